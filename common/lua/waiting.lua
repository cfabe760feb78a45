-- How many messages of a queue could be claimed now.
--
--   KEYS  home (see lib/place.lua)
--   reply how many
--
-- Those in line for their group follow when another one ends.
-- Changes nothing.

-- include place

local q = home(1)
return call('LLEN', q.ready) + call('ZCARD', q.priority)
  + call('ZCOUNT', q.delayed, '-inf', now)
  + call('ZCOUNT', q.delayed, AT_TICK, AT_TICK + clock(q))
