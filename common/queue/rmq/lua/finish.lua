-- Ack messages among the oldest of an unacked list, of which some hold a key
-- or a group.
--
--   KEYS  the queue's (see lib/place.lua), unacked
--   ARGV  see lib/window.lua
--   reply 1, or 0 and nothing done when these are not where they are expected
--         to be
--
-- A crash before: all are unacked.  After: those that are acked are gone, what
-- they held is free, the next of their groups have their turn, and the others
-- are as they were, in the same order.

-- include place
-- include window

local q, unacked = queue_keys(1), KEYS[7]
if not is_window(unacked) then
  return 0
end
local window, listed, acked = call('LRANGE', unacked, -WINDOW, -1), {}, {}
for i = 5, #ARGV do
  listed[ARGV[i] + 0] = true
end
for place = 1, WINDOW do
  if not ARGV[4] or (listed[place] or false) == (ARGV[4] ~= 'keep') then
    acked[#acked + 1] = window[WINDOW + 1 - place]
  end
end
need_leave(q)
check_types(q)
-- A removal first: it needs no memory; see claim.lua.
ack_window(unacked)
for i = 1, #acked do
  leave(q, options(acked[i]), 'done')
end
return 1
