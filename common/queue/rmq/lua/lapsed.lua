-- Tell cleaners that a connection did not die: its maker is alive, and has taken
-- another name.
--
-- KEYS C:info | [former=*]
-- ARGV [left_ms]
--
--   former   the info of the old connection; not on a cluster, where it is elsewhere
--   left_ms  then, in how many milliseconds that info ends
--   reply    1, or 0 when nothing is known of it any more
--
-- Each heartbeat begins the time to live of an info anew.  So the end of the
-- info tells when the last heartbeat was.  Other connections whose last heartbeat
-- was at that time lapsed, too, and did not crash: see clean.c.
--
-- A crash before: nothing has happened.  After: the info of the new connection
-- says it for as long as that exists.

local left = former and redis.call('PTTL', former) or tonumber(left_ms)
if left <= 0 then
  return 0
end
local time = redis.call('TIME')
-- Needs no memory; see write_when_full.lua.
redis.call('PERSIST', info)
redis.call('HSET', info, 'lapsed',
  string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + left))
return 1
