-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Pause a queue, or prolong its pause.
--
-- KEYS paused
-- ARGV ms
--
--   ms     from now on; above 0
--   reply  1; 0: the pause lasted as long already
--
-- A crash before: nothing has happened.  After: the queue is paused.

-- include rights

local left = redis.call('PTTL', paused)
if left == -1 or left >= tonumber(ms) then
  return 0
end
-- PERSIST needs no memory; see write_when_full.lua.
need(paused, 'SET')
redis.call('PERSIST', paused)
redis.call('SET', paused, '1', 'PX', ms)
return 1
