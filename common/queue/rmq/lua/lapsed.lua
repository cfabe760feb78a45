-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Note for cleaners that a connection did not die: its consumer is alive, and has another
-- name now.
--
-- KEYS C:info | [former=*]
-- ARGV [left_ms]
--
--   former   the info of the old connection; not on a cluster, where it is in another slot
--   left_ms  on a cluster, the time to live of that info in milliseconds
--   reply    1, or 0 when that info is gone
--
-- Each heartbeat begins the time to live of an info anew, so the end of that tells when the
-- last heartbeat was.  Other connections whose last heartbeat was at that time did not crash,
-- either: see clean.c.
--
-- A crash before: nothing has happened.  After: the info of the new connection has the time.

local left = former and redis.call('PTTL', former) or tonumber(left_ms)
if left <= 0 then
  return 0
end
local time = redis.call('TIME')
-- PERSIST needs no memory; see write_when_full.lua.
redis.call('PERSIST', info)
redis.call('HSET', info, 'lapsed',
  string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + left))
return 1
