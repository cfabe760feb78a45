-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Steps through lists and sorted sets that may be long.

-- include sets

-- The next n elements of a list, for a walk from its right end with `behind` elements behind
-- it.
local function list_slice(key, behind, n)
  local part, turned = call('LRANGE', key, -behind - n, -behind - 1), {}
  for i = #part, 1, -1 do
    turned[#turned + 1] = part[i]
  end
  return turned
end

-- Shows up to max messages to see(element, score, number), until that is true, for a walk with
-- `behind` messages behind it; returns how many.  range: of a set, as for set_slice(); false:
-- a list.  Slices begin small and stay small, since messages may be long.
local function go_through(key, range, behind, max, see)
  local looked, size = 0, 1
  while looked < max do
    local first, n = behind + looked, math.min(size, max - looked)
    local part, scores
    if range then
      part, scores = set_slice(range, key, first, first + n - 1)
    else
      part = list_slice(key, first, n)
    end
    for i = 1, #part do
      looked = looked + 1
      if see(part[i], scores and scores[i], looked) then
        return looked
      end
    end
    size = math.min(2 * size, 32)
  end
  return looked
end

-- Number of elements now behind a walk through a list; `behind` were, the last of which
-- is_anchor() knows.  nil: none of the next `most` elements, or `room` bytes, to the right is
-- that one.  Of equal elements the nearest is meant: the outermost would set the walk back
-- again and again.
local function locate(key, behind, most, room, is_anchor)
  local last = behind > 0 and call('LINDEX', key, -behind)
  if last and is_anchor(last) then
    return behind
  end
  local at, size = behind - 1, 4
  while at > 0 and behind - at < most and room > 0 do
    local n = math.min(size, at)
    local part = call('LRANGE', key, -at, n - at - 1)
    for i = 1, #part do
      if is_anchor(part[i]) then
        return at - n + #part - i + 1
      end
      room = room - #part[i]
    end
    at, size = at - n, math.min(2 * size, 64)
  end
end

-- Writes the tombstone at places, which count from the right end, -1 first.  Elements then
-- leave the list by one LREM: each LREM goes through the list from its end.
local function mark_places(key, places, tombstone)
  for i = 1, #places do
    call('LSET', key, places[i], tombstone)
  end
end

-- Removes n tombstones, from the nearer end; behind: about how many elements are to their
-- right.  try: call(), or pcall(), which returns an error.
local function remove_marked(try, key, n, tombstone, behind)
  local side = behind > call('LLEN', key) / 2 and 1 or -1
  return try('LREM', key, side * n, tombstone)
end
