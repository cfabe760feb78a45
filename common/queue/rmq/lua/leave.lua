-- Forget a connection that has no message of its queue any more.
--
--   KEYS  unacked, consumers, the connection's queues, rmq::connections, its
--         heartbeat, its info
--   ARGV  queue, connection
--   reply 1, or 0 when it still has messages there, and nothing has changed
--
-- A crash before: it is listed until its lease ends, and a cleaner comes.
-- After: nothing of it is left, if this was its only queue.

local call = redis.call

if call('EXISTS', KEYS[1]) == 1 then
  return 0
end
call('DEL', KEYS[2])
call('SREM', KEYS[3], ARGV[1])
if call('EXISTS', KEYS[3]) == 0 then
  call('SREM', KEYS[4], ARGV[2])
  call('DEL', KEYS[5], KEYS[6])
end
return 1
