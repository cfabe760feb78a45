-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Stop waiting for a queue's messages.  If the consumer was on watch, or had been woken,
-- the next consumer is woken instead; see lib/role.lua.
--
-- KEYS watch idle
-- ARGV name
--
--   name   in the consumer's channel
--   reply  1 if another consumer was woken, else 0
--
-- A crash before: nothing has happened; other consumers notice when they look.
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
