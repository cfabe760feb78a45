-- Places among the messages of a queue, in the order in which they can be
-- received.  Needs rsmq.

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

-- How many messages a walk is past that came to this one last, wherever that
-- is by now.  No score: it has not begun.
local function past(q, score, id)
  if score == '' then
    return 0
  elseif call('ZSCORE', q.z, id) == score then
    return call('ZRANK', q.z, id) + 1
  end
  local low = call('ZCOUNT', q.z, '-inf', '(' .. score)
  local high = call('ZCOUNT', q.z, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if is_before(id, call('ZRANGE', q.z, middle, middle)[1]) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

-- How many can be received now.
local function visible(q)
  return call('ZCOUNT', q.z, '-inf', int(now))
end

-- Which of these hidden ones are in somebody's hands; the others wait.
local function taken(q, ids)
  local list, waits, runs = {}, await_run(q, ids), received(q, ids)
  for i = 1, #ids do
    list[i] = not waits[i] and (whole(runs[i]) or 0) > 0
  end
  return list
end

-- What the connections hold whose keys are the last ones, from there on.
local function held_from(q, first)
  local next_key, set = ipairs(KEYS), {}
  for _, held in next_key, KEYS, first - 1 do
    for _, id in ipairs(held_by(q, held)) do
      set[id] = true
    end
  end
  return set
end

-- Counts hidden ones, at most max from place at on: how many wait, how many are
-- in somebody's hands, but not the spared ones, the first that waits, how many
-- follow, and the last.
local function count_hidden(q, at, max, spared)
  local waits, held, first, id = 0, 0, false, false
  local stop = call('ZCARD', q.z)
  local last = math.min(stop, at + max)
  while at < last do
    local ids = call('ZRANGE', q.z, at, math.min(at + 500, last) - 1)
    local list = taken(q, ids)
    for i = 1, #ids do
      if list[i] then
        held = held + (spared[ids[i]] and 0 or 1)
      else
        waits, first = waits + 1, first or ids[i]
      end
    end
    at, id = at + #ids, ids[#ids]
  end
  return waits, held, first, math.max(0, stop - at), id
end
