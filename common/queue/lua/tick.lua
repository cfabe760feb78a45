-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Set a queue's clock, which never goes back.
--
-- KEYS clock
-- ARGV tick
--
--   reply  the clock's tick
--
-- A crash before: nothing has happened.  After: the clock is set.

local now = tonumber(redis.call('GET', clock)) or 0
if tonumber(tick) > now then
  redis.call('SET', clock, tick)
  return tonumber(tick)
end
return now
