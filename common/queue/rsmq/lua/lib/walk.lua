-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Walks through the messages of a queue, in the order in which they can be received.
-- Needs layout.

-- include sets

-- Number of messages that can be received now.
local function visible(q)
  return call('ZCOUNT', q.z, '-inf', int(now))
end

-- Whether each of these hidden messages is unacked; the others wait.
local function taken(q, ids)
  local list, waits, runs = {}, await_run(q, ids), received(q, ids)
  for i = 1, #ids do
    list[i] = not waits[i] and (whole(runs[i]) or 0) > 0
  end
  return list
end

-- Whether a place has only a part of the hidden messages.
local function is_hidden(place)
  return place == 'delayed' or place == 'unacked'
end

-- Number of messages behind a walk through a place, and at its end.  score, id: of the last
-- message of the walk, which may have left or moved.
local function locate(q, place, score, id)
  local at, stop = past(q.z, score, id), call('ZCARD', q.z)
  if place == 'ready' then
    stop = visible(q)
  elseif is_hidden(place) then
    at = math.max(at, visible(q))
  end
  return at, stop
end

-- Shows up to max messages to see(ids, scores), for a walk with `at` messages behind it, until
-- see() returns the number of the last one; returns score and id of that, or '', and how many
-- follow.
local function go_on(q, at, max, see)
  local stop, score, id = call('ZCARD', q.z), '', ''
  local last = math.min(stop, at + max)
  while at < last do
    local ids, scores =
      set_slice('ZRANGE', q.z, at, math.min(at + 500, last) - 1)
    local n = see(ids, scores)
    at, last = at + (n or #ids), n and 0 or last
    score, id = scores[n or #ids], ids[n or #ids]
  end
  return score, id, math.max(0, stop - at)
end

-- A set of the ids that connections hold; their keys are the last, from `first` on.
local function held_from(q, first)
  local next_key, set = ipairs(KEYS), {}
  for _, held in next_key, KEYS, first - 1 do
    for _, id in ipairs(held_by(q, held)) do
      set[id] = true
    end
  end
  return set
end
