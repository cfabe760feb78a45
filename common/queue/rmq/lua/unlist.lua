-- Forget a dead connection that has no queue any more.
--
--   KEYS  rmq::connections, the connection's queues, its heartbeat, its info,
--         what runs there
--   ARGV  connection
--   reply 1 if it was listed until now, else 0
--
-- A crash before: it is listed, and the next cleaner comes here again.  After:
-- nothing of it is left.

if redis.call('PTTL', KEYS[3]) > 0 or redis.call('SCARD', KEYS[2]) > 0 then
  return 0
end
redis.call('DEL', KEYS[4], KEYS[5])
return redis.call('SREM', KEYS[1], ARGV[1])
