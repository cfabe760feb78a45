-- List a connection and a queue of it again, if there are unacked messages
-- that no cleaner would find.
--
--   KEYS  unacked, the connection's heartbeat, rmq::connections, the
--         connection's queues
--   ARGV  connection, queue, '1' to change nothing and only say what would be
--   reply 1, or 0 when there is nothing to adopt
--
-- Whoever joins has a heartbeat before anything else.
-- A crash before: nothing has happened.  After: any cleaner goes on.

if redis.call('EXISTS', KEYS[2]) == 1
    or redis.call('TYPE', KEYS[1]).ok ~= 'list'
    or redis.call('SISMEMBER', KEYS[3], ARGV[1]) == 1
      and redis.call('SISMEMBER', KEYS[4], ARGV[2]) == 1 then
  return 0
end
if ARGV[3] ~= '1' then
  -- Changes nothing and needs no memory; see claim.lua.
  redis.call('LTRIM', KEYS[1], 0, -1)
  redis.call('SADD', KEYS[4], ARGV[2])
  redis.call('SADD', KEYS[3], ARGV[1])
end
return 1
