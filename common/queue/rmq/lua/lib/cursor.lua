-- Going through what may be long.

-- include sets

-- The next n of a list when so many are behind the walk, which begins at its right end.
local function list_slice(key, behind, n)
  local part, turned = call('LRANGE', key, -behind - n, -behind - 1), {}
  for i = #part, 1, -1 do
    turned[#turned + 1] = part[i]
  end
  return turned
end

-- Looks at up to max when `behind` are behind the walk, and at no more once see(one, its
-- score, its number) is true: how many.  range: of a set, as for set_slice(); false: of a
-- list.  A slice has few at first, and never many: nobody knows how long the next ones are.
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

-- How many are behind a walk through a list, when `behind` were, the last of which
-- is_anchor() knows; nil: none of up to `most`, or room bytes, to its right is that one.
-- The nearest comes first: of many equal ones, the outermost would set the walk back
-- again and again.  What was brought to the left may be equal to it, too.
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

-- What leaves a list goes all at once: the nth of many, deep in a long one, is found
-- quickly, but to remove it by its value means to go there through all the others.
-- Places count from the right end, -1 first.
local function mark_places(key, places, tombstone)
  for i = 1, #places do
    call('LSET', key, places[i], tombstone)
  end
end

-- try: call(), or pcall(), which returns an error.  behind: about how many are to their
-- right.
local function remove_marked(try, key, n, tombstone, behind)
  local side = behind > call('LLEN', key) / 2 and 1 or -1
  return try('LREM', key, side * n, tombstone)
end
