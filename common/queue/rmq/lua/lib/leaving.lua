-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Locks of a message that leaves: its key is freed, and the next of its group has its turn.
-- Acks include only this part of place.lua: each function that a script defines takes as long
-- as a short command.

-- include basics
-- include options

local serial = 0

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

-- The setting group-slots is the number of slots of each group, one for each message in flight.
-- The lock of the first slot is g<group>; behind that, others have their number in two hex
-- digits.  The field s has the limit, and the highest limit ever, up to which there may be
-- locks.  Behind a free slot no slot is taken, unless an older program has freed the first.
local function slot_field(line, n)
  return 'g' .. line .. (n > 1 and string.format('%02x', n) or '')
end

local function slot_limits(text)
  local limit, most = (text or ''):match('^(%d+) (%d+)$')
  return tonumber(limit) or 1, tonumber(most) or 1
end

-- The locks of a group's slots, and how many may be taken.
local function slots_of(q, line)
  local held, fields = call('HMGET', q.locks, 'g' .. line, 's'), {}
  local limit, most = slot_limits(held[2])
  if most == 1 then
    return { held[1] }, 1
  end
  for n = 1, most do
    fields[n] = slot_field(line, n)
  end
  return call('HMGET', q.locks, unpack(fields)), limit
end

local function take_slot(q, field, id)
  local held = held_by(id)
  call('HSET', q.locks, field, held)
  return held
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

-- The id of the message that has replaced one whose key is kept until it is claimed, if any:
-- while the older one waits in a place where only a search would find it, locks has the field r
-- and its id, with its id, that of the newer one, and when that was written, in microseconds.
local function newer_than(q, w)
  local held = w.unique == 'queued' and call('HGET', q.locks, 'r' .. w.id)
  return held and held:sub(34, 65)
end

-- Frees the key of a message, if kept until `when` ('queued': the message starts; 'done': it
-- ends), or always when the message vanishes.  held: the key's lock, if the caller has it.
local function unlock(q, w, when, held)
  held = held or own(q, 'k', w.key, w)
  if held and (when == 'vanish' or mode(held) == 'queued' or mode(held) == when) then
    call('HDEL', q.locks, 'k' .. w.key)
  elseif not held and when == 'vanish' and w.unique == 'queued' then
    call('HDEL', q.locks, 'r' .. w.id)
  end
end

-- The first messages in line for a group, up to n.
local function first_in_line(q, line, n)
  local score = string.format('%.0f', IN_LINE + tonumber(line, 16))
  return n > 0 and call('ZRANGEBYSCORE', q.delayed, score, score, 'LIMIT', 0, n) or {}
end

-- The turns of the next messages in line for a group, one for each slot that may be taken.
-- freed: a slot that becomes free before, if any.
local function turns_of(q, line, slots, limit, freed)
  local free = limit
  for n = 1, #slots do
    slots[n] = n ~= freed and slots[n]
    free = free - (slots[n] and 1 or 0)
  end
  local turns = { line = line, slots = slots, freed = freed }
  for i, member in ipairs(first_in_line(q, line, free)) do
    local element = member:sub(33)
    turns[i] = { member = member, element = element,
      v = options(element) or { priority = 0, due = 0 } }
  end
  return turns
end

-- Frees a slot: the last lock takes its place.
local function free_slot(q, line, slots, n)
  local last = #slots
  while last > n and not slots[last] do
    last = last - 1
  end
  if last > n then
    call('HSET', q.locks, slot_field(line, n), slots[last])
  end
  call('HDEL', q.locks, slot_field(line, last))
end

local function begin_turns(q, turns)
  local slots, n = turns.slots, 1
  for i = 1, #turns do
    local v, member = turns[i].v, turns[i].member
    while slots[n] do
      n = n + 1
    end
    slots[n] = take_slot(q, slot_field(turns.line, n), v.id or '')
    if v.due > now then
      call('ZADD', q.delayed, v.due, member)
    else
      place(q, turns[i].element, v)
      call('ZREM', q.delayed, member)
    end
  end
  if turns.freed and not slots[turns.freed] then
    free_slot(q, turns.line, slots, turns.freed)
  end
end

-- The turns that begin when a message leaves; false unless the message holds its group.
local function turns_after(q, w)
  local slots, limit = slots_of(q, w.line)
  for n = 1, #slots do
    if holder(slots[n]) == w.id then
      return turns_of(q, w.line, slots, limit, n)
    end
  end
  return false
end

-- The functions of batch.lua.  Few messages are in batches, and to define all of these takes as
-- long as several commands.
local batches
local function in_batches()
  if not batches then
-- include batch
    batches = { check = check, open = open, is_open = is_open, unknown = unknown,
      awaited = awaited, start = start, close = close, admit = admit }
  end
  return batches
end

-- Frees the locks of a message that has left its queue.  when: 'done' (or rejected), or
-- 'vanish' if it was never run.  ending: what its batch counts.  turns: turns_after(), if the
-- caller has it.
local function leave(q, w, when, ending, turns)
  if w and w.line and turns == nil then
    turns = turns_after(q, w)
  end
  if turns then
    begin_turns(q, turns)
  end
  if w and w.key then
    unlock(q, w, when)
  end
  if w and w.batch then
    in_batches().close(q, w.id, w.batch, ending)
  end
end
