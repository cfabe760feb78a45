-- Bring messages of a list from its right end to its left one.
--
--   KEYS  list
--   ARGV  'turn', bytes, from, anchor, span: those that are behind a walk (see
--         walk.lua), but the last span of them, so that what is to be taken is near the
--         right end.  When the walk has come around, all are in their old order.
--         'home', bytes, first: any, until the first that was brought is at the right
--         end again
--   reply {how many were brought, from, the first of them}, or {how many were brought,
--         how many there are, ''}
--
-- At most 1000, or about so many bytes, at once.
-- A crash before or after: all are in the list, and keep their order in the circle that
-- the two ends make.

local call, key, room = redis.call, KEYS[1], tonumber(ARGV[2])

local function bring(n, last)
  local moved = 0
  -- Changes nothing and needs no memory; see claim.lua.
  call('LTRIM', key, 0, -1)
  while moved < n and room > 0 and call('LINDEX', key, -1) ~= last do
    room = room - #call('LMOVE', key, key, 'RIGHT', 'LEFT')
    moved = moved + 1
  end
  return moved
end

if ARGV[1] == 'home' then
  local n = call('LLEN', key)
  return { bring(math.min(n, 1000), ARGV[3]), n, '' }
end
local from, span = tonumber(ARGV[3]), tonumber(ARGV[5])
-- Somebody else is at work there: the walk finds its place first.
if from <= span or call('LINDEX', key, -from) ~= ARGV[4] then
  return { 0, from, '' }
end
local first = call('LINDEX', key, -1)
local n = bring(math.min(from - span, 1000))
return { n, from - n, first }
