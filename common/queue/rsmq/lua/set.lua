-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Change attributes of a queue.
--
-- KEYS hash=:Q
-- ARGV (name value)...
--
--   reply 1; 0: the queue does not exist
--
-- A crash before: nothing has changed.  After: everything.

-- include layout

local there = call('HMGET', hash, 'vt', 'delay', 'maxsize')
if not (there[1] and there[2] and there[3]) then
  return 0
end
call('HSET', hash, 'modified', time[1], unpack(ARGV))
return 1
