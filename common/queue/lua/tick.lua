-- Set a queue's clock, which never goes back.
--
--   KEYS  clock
--   ARGV  the tick
--   reply the tick it is at now
--
-- A crash before: nothing has happened.  After: it is set.

local tick = tonumber(redis.call('GET', KEYS[1])) or 0
if tonumber(ARGV[1]) > tick then
  redis.call('SET', KEYS[1], ARGV[1])
  return tonumber(ARGV[1])
end
return tick
