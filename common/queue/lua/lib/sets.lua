-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Places in a sorted set that may be long.

-- Compares bytes: `<` of Lua depends on the server's locale.
local function is_before(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = a:byte(i), b:byte(i)
    if x ~= y then
      return x < y
    end
  end
  return #a < #b
end

-- Number of members before the place of a member that may be missing.
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

-- Number of members that a walk from the lowest score on has behind it; score and member: the
-- last one then, which may have left or moved.  No score: the walk has not begun.
local function past(key, score, member)
  if score == '' then
    return 0
  elseif call('ZSCORE', key, member) == score then
    return call('ZRANK', key, member) + 1
  end
  return count_before(key, score, member)
end

-- Members and scores from rank first to last; range: 'ZRANGE' or 'ZREVRANGE'.
local function set_slice(range, key, first, last)
  local part, members, scores =
    call(range, key, first, last, 'WITHSCORES'), {}, {}
  for i = 1, #part, 2 do
    members[#members + 1], scores[#scores + 1] = part[i], part[i + 1]
  end
  return members, scores
end
