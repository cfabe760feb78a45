-- Forget a dead connection that has no queue any more.
--
--   KEYS  rmq::connections, the connection's queues, its heartbeat, its info,
--         what runs there
--   ARGV  connection
--   reply 1 if it was listed until now, else 0
--
-- A crash before: it is listed, and the next cleaner comes here again.  After:
-- nothing of it is left.

local connections, queues, heartbeat, info, running = unpack(KEYS)

if redis.call('PTTL', heartbeat) > 0 or redis.call('SCARD', queues) > 0 then
  return 0
end
redis.call('DEL', info, running)
return redis.call('SREM', connections, ARGV[1])
