-- Places in a sorted set that may be long.

-- By their bytes; how Lua compares strings depends on the server's language.
local function is_before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = a:byte(i), b:byte(i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

-- How many members are before where this one is, or would be.
local function count_before(key, score, member)
  local low = call('ZCOUNT', key, '-inf', '(' .. score)
  local high = call('ZCOUNT', key, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if is_before(call('ZRANGE', key, middle, middle)[1], member) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- How many members are behind a walk, from the lowest score on, that came to this one last,
-- wherever that is by now.  No score: the walk has not begun.
local function past(key, score, member)
  if score == '' then
    return 0
  elseif call('ZSCORE', key, member) == score then
    return call('ZRANK', key, member) + 1
  end
  return count_before(key, score, member)
end

-- The members and their scores from the rank first to last, of ZRANGE or ZREVRANGE.
local function set_slice(range, key, first, last)
  local part, members, scores =
    call(range, key, first, last, 'WITHSCORES'), {}, {}
  for i = 1, #part, 2 do
    members[#members + 1], scores[#scores + 1] = part[i], part[i + 1]
  end
  return members, scores
end
