-- Wait for the messages of a queue no more.  If the consumer was on watch, or was
-- woken, the next one is woken instead; see lib/role.lua.
--
-- KEYS watch idle
-- ARGV name
--
--   name   in the consumer's channel
--   reply  1 if another consumer was woken, else 0
--
-- A crash before: nothing has happened; the others find out by their looks.
-- After: nothing of the consumer is left here.

-- include wake

local watches = redis.call('GET', watch) == name
if redis.call('ZREM', idle, name) == 1 and not watches then
  return 0
end
if watches then
  redis.call('UNLINK', watch)
end
return wake(idle, 1)
