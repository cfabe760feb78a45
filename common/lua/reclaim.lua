-- Give unacked messages back to the front of ready, in their old order, except
-- for the ARGV[1] oldest.  At most ARGV[2] in one call.
--
--   KEYS  unacked, ready
--   reply how many were moved
--
-- The newest goes first, so that the oldest ends up in front.  A crash
-- between two calls leaves the rest where they were; the next caller goes on.

-- Changes nothing and needs no memory; see claim.lua.
redis.call('LTRIM', KEYS[1], 0, -1)

local moved = 0
local surplus = redis.call('LLEN', KEYS[1]) - ARGV[1]
while moved < surplus and moved < tonumber(ARGV[2]) do
  redis.call('LMOVE', KEYS[1], KEYS[2], 'LEFT', 'RIGHT')
  moved = moved + 1
end
return moved
