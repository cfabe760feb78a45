-- Give all unacked messages back to the front of ready, in their old order.
--
--   KEYS  the queue's (see lib/place.lua), unacked
--   reply how many were moved
--
-- The newest goes first, so that the oldest ends up in front, of its priority
-- if it has one.
-- A crash before: they are unacked.  After: they are ready.

-- include place

local q, unacked = queue_keys(1), KEYS[7]

need(q.ready, 'RPOP')
-- Changes nothing and needs no memory; see claim.lua.
call('LTRIM', unacked, 0, -1)

local moved = 0
while true do
  local element = call('LMOVE', unacked, q.ready, 'LEFT', 'RIGHT')
  if not element then
    return moved
  end
  local w = options(element)
  if w and (w.tick or w.priority ~= 0) then
    place(q, element, w, true)
    call('RPOP', q.ready)
  end
  if w then
    refresh_locks(q, w)
  end
  if w and w.key and w.unique == 'queued' then
    lock(q, w)
  end
  if w then
    refresh_locks(q, w)
  end
  moved = moved + 1
end
