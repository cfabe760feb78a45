-- Forget a connection that has no message of its queue any more.
--
--   KEYS  what it holds, its lease, the set of connections
--   ARGV  its name
--   reply 1, or 0 when it still has messages, and nothing has changed
--
-- A crash before: it is listed until its lease is over, and a cleaner comes.
-- After: nothing of it is left.

if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
redis.call('DEL', KEYS[2])
redis.call('ZREM', KEYS[3], ARGV[1])
return 1
