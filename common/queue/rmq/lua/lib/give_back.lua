-- Unacked messages that go back to the front of ready.  Needs place.

-- Back to the front of its kind.  A key that was kept until its message ran is
-- kept again.
local function give_back(q, element, w)
  put_back(q, element, w, true)
  if w and w.key and w.unique == 'queued' then
    lock(q, w)
  end
end

-- A message that asks for something takes the time of this many others.
local WEIGHT = 5

-- The newest ones, up to max, the newest first: how many.  Bounded: about 1 MiB,
-- or 500 messages, fewer if they ask for something.
local function give_back_newest(q, unacked, max)
  local moved, work, room, checked = 0, 500, 1048576, false
  while moved < max and work > 0 and room > 0 do
    local element = call('LMOVE', unacked, q.ready, 'LEFT', 'RIGHT')
    if not element then
      break
    end
    local w = options(element)
    if w then
      if not checked then
        check_types(q)
        checked = true
      end
      call('RPOP', q.ready)
      give_back(q, element, w)
    end
    work, room = work - (w and WEIGHT or 1), room - #element
    moved = moved + 1
  end
  return moved
end
