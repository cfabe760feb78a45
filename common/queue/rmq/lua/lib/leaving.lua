-- Locks of a message that leaves: its key is freed, and the next of its group has its turn.
-- Acks include only this part of place.lua: each function that a script defines takes as long
-- as a short command.

-- include basics
-- include options

local serial = 0

-- Checks the rights for leave().
local function need_leave(q)
  need(q.locks, 'HGET', 'HSET', 'HDEL', 'ZRANGEBYSCORE', 'GET', 'ZADD', 'LPUSH',
    'ZREM')
end

local stamp
local function in_order()
  serial = serial + 1
  stamp = stamp or string.format('n%016.0f', now_us)
  return stamp .. string.format('%06d000000000', serial)
end

-- A prefix that sorts before all of in_order(), the latest first.
local function in_front()
  serial = serial + 1
  return string.format('f%016.0f%06.0f000000000', 1e16 - now_us, 999999 - serial)
end

-- A prefix that sorts by priority, the highest first, then attempts, then age; copies last.
local function in_tick(w, is_copy)
  return string.format('%03.0f%04.0f', 100 - w.priority, w.attempts or 0)
    .. (not is_copy and w.id or in_order()):sub(1, 25)
end

-- A lock's value has the id of its message, and of a key how long that is kept.
local function holder(held)
  return held and held:sub(1, 32)
end

local function mode(held)
  return held:match('^%S*', 34)
end

-- A lock's value, if the message holds it; kind: 'g' for a group, 'k' for a key.
local function own(q, kind, name, w)
  local held = name and call('HGET', q.locks, kind .. name)
  return held and holder(held) == w.id and held
end

local function held_by(id)
  return string.format('%s %.0f', id, now_us)
end

local function take_group(q, line, id)
  call('HSET', q.locks, 'g' .. line, held_by(id))
end

-- If another message here has the same id, a message gets a new id, of the same age, and
-- keeps the old one in Mq-Copy-Of.  Quotes inside of a value have a backslash before them,
-- so the name is found nowhere else.
local function copied(element, w)
  local head = element:sub(1, element:find('\n', 6, true) or 0)
  local first, last = head:find('"Mq%-Id"%s*:%s*%[%s*"'
    .. w.id:gsub('%W', '%%%0') .. '"')
  if not first then
    return element, w
  end
  serial = serial + 1
  local id = w.id:sub(1, 10)
    .. redis.sha1hex(w.id .. now_us .. ':' .. serial):sub(1, 22)
  local old = head:find('"Mq-Copy-Of"', 1, true) and ''
    or ',"Mq-Copy-Of":["' .. w.id .. '"]'
  element = head:sub(1, first - 1) .. '"Mq-Id":["' .. id .. '"'
    .. head:sub(last + 1):gsub('^%s*%]', '%0' .. old:gsub('%%', '%%%%'))
    .. element:sub(#head + 1)
  return element, options(element)
end

-- The key, and the score in a set, where a message belongs once it is due.  tick: the
-- clock's, if the message has one.
local function place_of(q, w, tick)
  if w and w.tick and w.tick > tick then
    return q.delayed, AT_TICK + w.tick
  elseif w and w.tick then
    return q.priority, TICKS + w.tick
  elseif w and w.priority ~= 0 then
    return q.priority, -w.priority
  end
  return q.ready
end

local function place(q, element, w, first)
  local key, score = place_of(q, w, w and w.tick and clock(q))
  if not score then
    call(first and 'RPUSH' or 'LPUSH', key, element)
  elseif not w.tick then
    call('ZADD', key, score, (first and in_front() or in_order()) .. element)
  elseif call('ZADD', key, 'NX', score, in_tick(w) .. element) == 0 then
    -- The set has a message with the same id.
    element = copied(element, w)
    call('ZADD', key, score, in_tick(w, true) .. element)
  end
end

-- Refuses keys of the wrong type, before anything has changed.
local function check_types(q)
  call('LLEN', q.ready)
  call('ZCARD', q.priority)
  call('ZCARD', q.delayed)
  call('HLEN', q.locks)
  clock(q)
end

-- Frees the key of a message, if kept until `when` ('queued': the message starts; 'done': it
-- ends), or always when the message vanishes.
local function unlock(q, w, when)
  local held = own(q, 'k', w.key, w)
  if held and (when == 'vanish' or mode(held) == 'queued' or mode(held) == when) then
    call('HDEL', q.locks, 'k' .. w.key)
  end
end

-- The turn of the next message in line for a group; without a message, the group becomes free.
local function turn_of(q, line)
  local score = string.format('%.0f', IN_LINE + tonumber(line, 16))
  local member =
    call('ZRANGEBYSCORE', q.delayed, score, score, 'LIMIT', 0, 1)[1]
  local element = member and member:sub(33)
  local v = member and options(element) or { priority = 0, due = 0 }
  return { line = line, member = member, element = element, v = v }
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

-- The turn that begins when a message leaves; false unless the message holds its group.
local function turn_after(q, w)
  return own(q, 'g', w.line, w) and turn_of(q, w.line)
end

-- Frees the locks of a message that has left its queue.  when: 'done' (or rejected), or
-- 'vanish' if it was never run.  turn: turn_after(), if the caller has it.
local function leave(q, w, when, turn)
  if w and w.line and turn == nil then
    turn = turn_after(q, w)
  end
  if turn then
    begin_turn(q, turn)
  end
  if w and w.key then
    unlock(q, w, when)
  end
end
