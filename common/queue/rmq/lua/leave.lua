-- Forget a connection that has no message of its queue any more.
--
-- KEYS unacked consumers queues connections=listed lease info
-- ARGV queue connection
--
--   queues  those of the connection
--   reply   1, or 0 when it still has messages there, and nothing has changed
--
-- A crash before: it is listed until its lease ends, and a cleaner comes.
-- After: nothing of it is left, if this was its only queue.

local call = redis.call

if call('EXISTS', unacked) == 1 then
  return 0
end
call('DEL', consumers)
call('SREM', queues, queue)
if call('EXISTS', queues) == 0 then
  call('SREM', connections, connection)
  call('DEL', lease, info)
end
return 1
