-- Pause a queue for at least so long.
--
-- KEYS paused
-- ARGV ms
--
--   ms     above 0
--   reply  1, or 0 when it was paused for as long already
--
-- A crash before: nothing has happened.  After: it is paused.

-- include rights

local left = redis.call('PTTL', paused)
if left == -1 or left >= tonumber(ms) then
  return 0
end
-- A write that needs no memory; see write_when_full.lua.
need(paused, 'SET')
redis.call('PERSIST', paused)
redis.call('SET', paused, '1', 'PX', ms)
return 1
