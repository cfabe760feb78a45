-- The turns of the messages of a group.  Needs place.

-- What begins when nobody holds the group any more: the turn of the next in line,
-- if there is one.
local function turn_of(q, line)
  local score = string.format('%.0f', IN_LINE + tonumber(line, 16))
  local member =
    call('ZRANGEBYSCORE', q.delayed, score, score, 'LIMIT', 0, 1)[1]
  local element = member and member:sub(33)
  local v = member and options(element) or { priority = 0, due = 0 }
  return { line = line, member = member, element = element, v = v }
end

-- Whether the message of a turn has no wish but to be the next.
local function goes_to_ready(turn)
  local v = turn.v
  return turn.member and v.due <= now and not v.tick and v.priority == 0
end

local function begin_turn(q, turn)
  local v, member = turn.v, turn.member
  if not member then
    call('HDEL', q.locks, 'g' .. turn.line)
    return
  end
  need(q.delayed, 'ZREM')
  take_group(q, turn.line, v.id or '')
  if v.due > now then
    call('ZADD', q.delayed, v.due, member)
  else
    place(q, turn.element, v)
    call('ZREM', q.delayed, member)
  end
end

local function next_turn(q, line)
  begin_turn(q, turn_of(q, line))
end

-- The turn that begins when a message leaves, if it holds its group.
local function turn_after(q, w)
  return holder(call('HGET', q.locks, 'g' .. w.line)) == w.id
    and turn_of(q, w.line)
end
