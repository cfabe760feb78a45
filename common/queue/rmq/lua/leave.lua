-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Forget a connection without messages of its queue.
--
-- KEYS unacked consumers holders slots watch queues connections=listed lease info
-- ARGV queue connection
--
--   queues  those of the connection
--   reply   1; 0 and nothing done: the connection has messages there
--
-- A crash before: the connection is listed until its lease is over, and a cleaner comes.
-- After: nothing of the connection is left, if this was its only queue.

local call = redis.call

-- include shared

if call('EXISTS', unacked, slots) > 0 then
  local own = call('LLEN', unacked)
  free_slots(slots, watch, connection, own)
  if own > 0 then
    return 0
  end
end
call('DEL', consumers)
call('HDEL', holders, connection)
call('SREM', queues, queue)
if call('EXISTS', queues) == 0 then
  if connections == 'rmq::connections' then
    redis.pcall('ZREM', 'rmq::holders', connection)
  end
  call('SREM', connections, connection)
  call('DEL', lease, info)
end
return 1
