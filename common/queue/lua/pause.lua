-- Pause a queue for at least so long.
--
--   KEYS  paused
--   ARGV  milliseconds, above 0
--   reply 1, or 0 when it was paused for as long already
--
-- A crash before: nothing has happened.  After: it is paused.

-- include rights

local left = redis.call('PTTL', KEYS[1])
if left == -1 or left >= tonumber(ARGV[1]) then
  return 0
end
-- A write that needs no memory; see write_when_full.lua.
need(KEYS[1], 'SET')
redis.call('PERSIST', KEYS[1])
redis.call('SET', KEYS[1], '1', 'PX', ARGV[1])
return 1
