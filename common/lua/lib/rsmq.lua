-- Messages in the layout of RSMQ.
--
-- A queue's home is four keys, in this order:
--
--   z  sorted set: its messages' ids; score: when it can be received, unix
--      milliseconds
--   h  hash: vt, delay, maxsize, created, modified, totalsent, totalrecv; and
--      of each message ID, its body, ID:rc, how often it was received, and
--      ID:fr, when it was first, unix milliseconds
--   x  hash, ours: of a message that has more headers than its id, those: the
--      members of a JSON object, without its braces
--   d  set, ours: ids of messages that wait on purpose for another run, and
--      are in nobody's hands
--
-- To our programs a message is what it would be in the layout of rmq: a header
-- with its id and the number of runs before this one, and the body.

-- include rights

local call = redis.call
local time = call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)

local function home(i)
  return { z = KEYS[i], h = KEYS[i + 1], x = KEYS[i + 2], d = KEYS[i + 3] }
end

-- How a number goes into a command: not as 1.79e+12.
local function int(n)
  return string.format('%.0f', n)
end

-- A queue that there is not yet; its name is put into the set of all.  Holes
-- are filled, as node does it.
local function create(h, names, name, vt, delay, maxsize)
  if call('HSETNX', h, 'vt', vt) + call('HSETNX', h, 'delay', delay)
      + call('HSETNX', h, 'maxsize', maxsize) > 0 then
    call('HSETNX', h, 'created', time[1])
    call('HSETNX', h, 'modified', time[1])
  end
  call('SADD', names, name)
end

-- Ids are whatever somebody has put there.
local function quoted(id)
  return id:find('^[%w:]+$') and '"' .. id .. '"' or cjson.encode(id)
end

-- plain: the id needs no quoting.
local function element(id, body, runs, extra, plain)
  if plain and runs == 0 and not extra then
    return '\255\0\190\190J{"Mq-Id":["' .. id .. '"]}\n' .. body
  end
  local head = '\255\0\190\190J{"Mq-Id":[' .. quoted(id) .. ']'
  if runs > 0 then
    head = head .. ',"Mq-Attempt":["' .. runs .. '"]'
  end
  if extra then
    head = head .. ',' .. extra
  end
  return head .. '}\n' .. body
end

-- Of each id: its body (false: none), how often it was received, its headers.
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
      runs = tonumber(got[2 * i]) or 0, extra = extra and extra[i] or nil }
  end
  return list
end

-- What forget(), put_back() and create() may come to.
local function need_forget(q)
  need(q.z, 'ZREM', 'HDEL', 'EXISTS', 'SREM')
end

local function need_put_back(q)
  need(q.z, 'HGET', 'HSET', 'HDEL', 'ZADD')
end

local function need_create(h)
  need(h, 'HSETNX', 'SADD')
end

-- Nothing is left of them here.
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
    call('SREM', q.d, unpack(ids))
  end
end

-- Whether a connection still has them all: nobody else has received one since.
local function holds(q, held, ids)
  local fields = {}
  for i = 1, #ids do
    fields[i] = ids[i] .. ':rc'
  end
  local rc = call('HMGET', q.h, unpack(fields))
  local ours = call('HMGET', held, unpack(ids))
  for i = 1, #ids do
    if not ours[i] or ours[i] ~= rc[i] then
      return false
    end
  end
  return true
end

-- When a message was sent, by its id, but not in the future; now, if that says
-- nothing.
local function sent(id)
  local us = tonumber(id:sub(1, 10), 36)
  return math.min(us and math.floor(us / 1000) or now, now)
end

-- It is the next one again, as if nobody had received it.
local function put_back(q, id)
  local runs = tonumber(call('HGET', q.h, id .. ':rc')) or 0
  if runs > 1 then
    call('HSET', q.h, id .. ':rc', runs - 1)
  else
    call('HDEL', q.h, id .. ':rc', id .. ':fr')
  end
  call('ZADD', q.z, 'XX', int(sent(id)), id)
end
