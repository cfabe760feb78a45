-- Ack the oldest messages of an unacked list, of which some hold a key or a
-- group.
--
--   KEYS  the queue's (see lib/place.lua), unacked
--   ARGV  how many, the oldest of them, the newest of them
--   reply how many, or 0 and nothing done when these are not where they are
--         expected to be
--
-- A crash before: all are unacked.  After: all are gone, what they held is
-- free, and the next of their groups have their turn.

-- include place

local q, unacked, n = queue_keys(1), KEYS[7], tonumber(ARGV[1])
local all = call('LRANGE', unacked, -n, -1)
if #all ~= n or all[n] ~= ARGV[2] or all[1] ~= ARGV[3] then
  return 0
end
need_leave(q)
check_types(q)
-- A removal first: it needs no memory; see claim.lua.
call('LTRIM', unacked, 0, -n - 1)
for i = n, 1, -1 do
  leave(q, options(all[i]), 'done')
end
return n
