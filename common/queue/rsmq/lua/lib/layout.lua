-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Messages in the layout of RSMQ.
--
-- A queue's keys are four, in this order; mq-rsmq(7) says what is in each:
--
--   z  sorted set: the messages' ids, by when each can be received, unix milliseconds
--   h  hash: attributes and totals of the queue, and of each message ID, the body, ID:rc
--      and ID:fr
--   x  hash, of these tools: headers of a message beside its id, as JSON without braces
--   d  hash, of these tools: the last receive of a message that waits on purpose for
--      another run
--
-- Scripts return a message as in the layout of rmq: a header with its id and the number of
-- runs before this one, and the body.

-- include rights
-- include utf8

local call = redis.call
local time = call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)

-- The keys of a queue, from `first` on in KEYS, and the keys behind them.
local function queue_keys(first)
  local z, h, x, d = unpack(KEYS, first, first + 3)
  return { z = z, h = h, x = x, d = d }, unpack(KEYS, first + 4, first + 16)
end

-- Iterates over a list, n values at a time.
local function parts(list, n)
  local first = 1 - n
  return function()
    first = first + n
    return list[first] and { unpack(list, first, math.min(first + n - 1, #list)) }
  end
end

-- A number as a command takes it: not as 1.79e+12.
local function int(n)
  return string.format('%.0f', n)
end

-- Makes a queue, or adds the attributes that it lacks, as node does it, and lists its name.
local function create(h, names, name, vt, delay, maxsize)
  if call('HSETNX', h, 'vt', vt or 30) + call('HSETNX', h, 'delay', delay or 0)
      + call('HSETNX', h, 'maxsize', maxsize or 65536) > 0 then
    call('HSETNX', h, 'created', time[1])
    call('HSETNX', h, 'modified', time[1])
  end
  call('SADD', names, name)
end

-- A count as a number, at most what Lua writes with all digits; nil: the text is no count.
local function whole(text)
  return text and text:find('^%d+$') and math.min(tonumber(text), 1e14 - 1) or nil
end

-- By this a score is lower for each step of priority.
local PRIORITY = 1e12

local function priority_of(extra)
  local n = whole(extra and extra:match('"Mq%-Priority":%["(%d+)"%]'))
  return n and n <= 100 and n or 0
end

-- The score of a message that can be received since a time in the past.
local function score_since(ms, extra)
  return string.format('%.3f', ms - priority_of(extra) * PRIORITY)
end

-- The set `later` has ids of delayed messages with a priority, and when they are due.  Due
-- ones get the score of their priority, unless their score has changed meanwhile.
local function promote(q, later)
  local due = call('ZRANGEBYSCORE', later, '-inf', int(now), 'WITHSCORES',
    'LIMIT', 0, 500)
  for i = 1, #due, 2 do
    local id, at = due[i], due[i + 1]
    if call('ZSCORE', q.z, id) == at then
      call('ZADD', q.z, score_since(at, call('HGET', q.x, id)), id)
    end
    call('ZREM', later, id)
  end
end

-- Other programs may use any id.  An id that can be a word, a file name and part of a URL is
-- shown as it is, any other by a hash.
local function shown_as(id)
  return #id <= 128 and id:find('^[%w:_][%w:_-]*$') and id
    or redis.sha1hex(id):sub(1, 32)
end

-- The headers for an id; if that is not UTF-8, each byte becomes a character up to U+00FF.
local function names_of(id)
  local name = shown_as(id)
  if name == id then
    return '"Mq-Id":["' .. id .. '"]'
  end
  local others = as_text(id) == id and '[^%w\128-\255]' or '[^%w]'
  return '"Mq-Id":["' .. id:gsub(others, function(c)
    return string.format('\\u%04x', c:byte())
  end) .. '"],"Mq-Name":["' .. name .. '"]'
end

-- A message as scripts return it; plain: shown_as() would not change the id.
local function element(id, body, runs, extra, plain)
  if plain and runs == 0 and not extra then
    return '\255\0\190\190J{"Mq-Id":["' .. id .. '"]}\n' .. body
  end
  local head = '\255\0\190\190J{' .. names_of(id)
  if runs > 0 then
    head = head .. ',"Mq-Attempt":["' .. runs .. '"]'
  end
  if extra then
    head = head .. ',' .. extra
  end
  return head .. '}\n' .. body
end

-- Reads messages: body (false: none), number of receives, headers.
local function read(q, ids)
  local fields = {}
  for i = 1, #ids do
    fields[2 * i - 1] = ids[i]
    fields[2 * i] = ids[i] .. ':rc'
  end
  local got = call('HMGET', q.h, unpack(fields))
  local extra = call('EXISTS', q.x) == 1 and call('HMGET', q.x, unpack(ids))
  local list = {}
  for i = 1, #ids do
    list[i] = { id = ids[i], body = got[2 * i - 1],
      runs = whole(got[2 * i]) or 0, extra = extra and extra[i] or nil }
  end
  return list
end

-- Refuses keys of the wrong type, before anything has changed.
local function check_types(q)
  call('ZCARD', q.z)
  call('HLEN', q.h)
  call('HLEN', q.x)
  call('HLEN', q.d)
end

-- Removes messages.
local function forget(q, ids)
  local fields = {}
  for i = 1, #ids do
    fields[3 * i - 2] = ids[i]
    fields[3 * i - 1] = ids[i] .. ':rc'
    fields[3 * i] = ids[i] .. ':fr'
  end
  call('ZREM', q.z, unpack(ids))
  call('HDEL', q.h, unpack(fields))
  if call('EXISTS', q.x, q.d) > 0 then
    call('HDEL', q.x, unpack(ids))
    call('HDEL', q.d, unpack(ids))
  end
end

-- The number of receives of each id, as text or false.
local function received(q, ids)
  local fields = {}
  for i = 1, #ids do
    fields[i] = ids[i] .. ':rc'
  end
  return call('HMGET', q.h, unpack(fields))
end

-- The ids that a connection still holds: no other receiver has had them since.
local function still_held(q, held, ids)
  local list, rc = {}, received(q, ids)
  local ours = call('HMGET', held, unpack(ids))
  for i = 1, #ids do
    if ours[i] and ours[i] == rc[i] then
      list[#list + 1] = ids[i]
    end
  end
  return list
end

local function holds(q, held, ids)
  return #still_held(q, held, ids) == #ids
end

-- All ids that a connection still holds.
local function held_by(q, held)
  local ids = {}
  for part in parts(call('HKEYS', held), 500) do
    for _, id in ipairs(still_held(q, held, part)) do
      ids[#ids + 1] = id
    end
  end
  return ids
end

-- A text that differs for each receive of a message.
local function last_receive(q, id)
  local fields = call('HMGET', q.h, id .. ':rc', id .. ':fr')
  return (fields[1] or '') .. ' ' .. (fields[2] or '')
end

-- Whether each id waits on purpose for another run: noted so, and not received since.
local function await_run(q, ids)
  local noted = call('EXISTS', q.d) == 1 and call('HMGET', q.d, unpack(ids)) or {}
  local list = {}
  for i = 1, #ids do
    list[i] = noted[i] and noted[i] == last_receive(q, ids[i]) or false
  end
  return list
end

-- When a message was sent, by its id, at most now, in unix milliseconds; now, if the id tells
-- no time.
local function sent(id)
  local us = tonumber(id:sub(1, 10), 36)
  return math.min(us and math.floor(us / 1000) or now, now)
end

-- When a message was sent, if its id has RSMQ's form and tells a time in the past, else nil.
-- Since July 2021 such ids begin with a letter behind f, unlike UUIDs in 32 hexadecimal
-- digits.
local function told_by(id)
  local time = #id == 32 and id:find('^%w+$') and id:sub(1, 10)
  local us = time and time:find('^[g-z][0-9a-z]+$') and tonumber(time, 36)
  return us and us <= now_us and us / 1000 or nil
end

-- Whether an id without a body is a minute old: some programs write the body after the id.
-- If the id tells no time, its age counts from the time when it can be, or first was, received.
local function is_torn(q, id)
  local since = told_by(id)
    or math.min(tonumber(call('ZSCORE', q.z, id)),
      whole(call('HGET', q.h, id .. ':fr')) or math.huge)
  return since < now - 60000
end

-- Undoes the last receive of a message, which is the next one then, of its priority, unless
-- the key of the headers has a wrong type.
local function put_back(q, id)
  local extra = redis.pcall('HGET', q.x, id)
  local runs = whole(call('HGET', q.h, id .. ':rc')) or 0
  if runs > 1 then
    call('HSET', q.h, id .. ':rc', runs - 1)
  else
    call('HDEL', q.h, id .. ':rc', id .. ':fr')
  end
  call('ZADD', q.z, 'XX',
    score_since(sent(id), type(extra) == 'string' and extra), id)
end
