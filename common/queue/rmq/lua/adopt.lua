-- List a connection and a queue of it again, if there are unacked messages
-- that nobody would find.
--
--   KEYS  unacked, rmq::connections, the connection's queues
--   ARGV  connection, queue, '1' to change nothing and only say what would be
--   reply 1, or 0 when there is nothing to adopt
--
-- A connection is listed, and its queue, before it claims anything.  So an
-- unlisted one was cleaned away: it is dead, or a Go program that goes on
-- nevertheless, and whose heartbeat keeps cleaners from its messages.
-- A crash before: nothing has happened.  After: any cleaner goes on.

local unacked, connections, queues = unpack(KEYS)

if redis.call('TYPE', unacked).ok ~= 'list'
    or redis.call('SISMEMBER', connections, ARGV[1]) == 1
      and redis.call('SISMEMBER', queues, ARGV[2]) == 1 then
  return 0
end
if ARGV[3] ~= '1' then
  -- Changes nothing and needs no memory; see claim.lua.
  redis.call('LTRIM', unacked, 0, -1)
  redis.call('SADD', queues, ARGV[2])
  redis.call('SADD', connections, ARGV[1])
end
return 1
