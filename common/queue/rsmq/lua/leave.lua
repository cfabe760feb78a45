-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Forget a connection without messages of its queue.
--
-- KEYS q:PLACES held lease connections holders slots watch
-- ARGV connection
--
--   reply 1; 0 and nothing done: the connection has messages
--
-- A crash before: the connection is listed until its lease is over, and a cleaner comes.
-- After: nothing of the connection is left.

-- include layout
-- include shared

local own = #held_by(q, held)
free_slots(slots, watch, connection, own)
if own > 0 then
  return 0
end
call('DEL', held, lease)
call('ZREM', connections, connection)
call('HDEL', holders, connection)
return 1
