-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Unacked messages that go back to the front of ready.  Needs place, and check_types() before.

-- If a message keeps its key until it runs, its key is taken again.
local function give_back(q, element, w)
  refresh_locks(q, w)
  place(q, element, w, true)
  if w and w.key and w.unique == 'queued' then
    lock(q, w)
  end
end

-- A message with options takes the time of this many others.
local WEIGHT = 5

-- A call gives back at most 500 messages, fewer if some have options, or about 1 MiB.
local MOST = 500
local work, room = MOST, 1048576

local function is_enough()
  return work <= 0 or room <= 0
end

local function spend(messages, bytes)
  work, room = work - messages, room - bytes
end

-- Gives back up to max messages, the newest first, until the call has done enough; returns
-- how many.
local function give_back_newest(q, unacked, max)
  local moved = 0
  while moved < max and not is_enough() do
    local element = call('LMOVE', unacked, q.ready, 'LEFT', 'RIGHT')
    if not element then
      break
    end
    local w = options(element)
    if w then
      call('RPOP', q.ready)
      give_back(q, element, w)
    end
    spend(w and WEIGHT or 1, #element)
    moved = moved + 1
  end
  return moved
end
