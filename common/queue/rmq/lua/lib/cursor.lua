-- Going through what may be long.

-- Looks at up to max, and at no more once see(one, its score) is true: how many.
-- fetch(looked, n) has the next n, and in a set their scores.  A slice has few at
-- first, and never many: nobody knows how long the next ones are.
local function go_through(max, fetch, see)
  local looked, size = 0, 1
  while looked < max do
    local part, scores = fetch(looked, math.min(size, max - looked))
    for i = 1, #part do
      looked = looked + 1
      if see(part[i], scores and scores[i]) then
        return looked
      end
    end
    size = math.min(2 * size, 32)
  end
  return looked
end

-- The next n of a list when so many are behind the walk, which begins at its right end.
local function list_slice(key, behind, n)
  local part, turned = call('LRANGE', key, -behind - n, -behind - 1), {}
  for i = #part, 1, -1 do
    turned[#turned + 1] = part[i]
  end
  return turned
end

-- Of a sorted set, from the rank first to last, ZRANGE or ZREVRANGE.
local function set_slice(range, key, first, last)
  local part, members, scores =
    call(range, key, first, last, 'WITHSCORES'), {}, {}
  for i = 1, #part, 2 do
    members[#members + 1], scores[#scores + 1] = part[i], part[i + 1]
  end
  return members, scores
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
