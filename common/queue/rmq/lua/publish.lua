-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Publish messages with options or limits; for others, see mark.lua.
--
-- KEYS q:PLACES counters known settings [noted=*] attachment...
-- ARGV when ms ready_max high_max delayed_max delayed_high_max alike join slot before
--      behind message...
-- NEEDS LPUSH ZADD HGET HSET HDEL HRANDFIELD SET HEXISTS ZCOUNT ZRANGEBYSCORE
--
--   noted       the marks of the publisher, if any (see lib/marks.lua)
--   attachment  behind noted (or a key that never exists) all keys of the set of
--               attachments of the only message
--   when, ms    'now', 'in' or 'at'; milliseconds from now, or unix milliseconds
--   *_max       limits (see lib/limits.lua); messages in line for their group count as
--               claimable
--   alike       'alike' if the headers of all messages differ only in the id and times,
--               else ''
--   join        if another message holds a message's key until it is claimed: 'join': the
--               message joins that one; 'replace': the message replaces that one; or ''
--   slot, before, behind  as in lib/marks.lua
--   message     32 bytes that make the message unique (its id, if alike; nothing, if alike
--               and published now), and the element
--   reply nil and nothing done: the previous batch is not done; else a letter for each
--         message: 'a', accepted; 'r', likewise, and has replaced another one; 'd', its key is held; 'j', joined; 's', its last tick is
--         over; 'u', a batch that it waits for is unknown; 'f', the queue is full, also
--         for all messages behind; then the ids of messages that were joined
--
-- A crash before: no message is there, and attachments expire.  After: all accepted messages
-- are there, counted and marked, and their attachments stay.  A marked batch is not published
-- again: the reply is the earlier one.  A message that is replaced has left, if it was in delayed
-- with a time; else it leaves when it is claimed.

-- include place
-- include marks
-- include limits

local limits = limits_of(ready_max, high_max, delayed_max, delayed_high_max, settings)
local marks = slot ~= '' and noted or nil
local done = replied(marks, slot, before)
if done or overtakes(marks, slot, behind) then
  return done
end
for i = first_attachment, #KEYS do
  if call('EXISTS', KEYS[i]) == 0 then
    return redis.error_reply('attachments are gone; publish them again')
  end
  need(KEYS[i], 'PERSIST')
end
local due = when == 'now' and 0 or tonumber(ms)
if when == 'in' then
  due = due + now
end
check_types(q)
local tick = clock(q)

-- Number of messages with the options w that the limits still accept, or nil: any number.
-- Messages in line for their group count as claimable, even if they wait for a time, too.
-- leaving: a message of delayed that leaves for this one.
local function space(w, leaving)
  local in_line = call('ZCOUNT', q.delayed, IN_LINE, '+inf')
  local high = w and w.priority > 0
  local joins = w and w.line and not slot_for(q, w)
  if not joins and (due > now or w and w.tick and w.tick > tick) then
    local max = tonumber(high and limits[4] or limits[3])
    return max and max - call('ZCARD', q.delayed) + in_line + (leaving and 1 or 0)
  end
  local max = tonumber(high and limits[2] or limits[1])
  return max and
    max - call('LLEN', q.ready) - call('ZCARD', q.priority) - in_line
end
local limited = table.concat(limits) ~= ''

alike = alike ~= ''
-- Number of bytes ahead of each element.
local ahead = alike and when == 'now' and 0 or 32
local shared = alike and options(ARGV[first_message]:sub(ahead + 1))
local id_at = shared and shared.id and ARGV[first_message]:find(shared.id, 1, true)
local holds = shared and (shared.line or shared.key or shared.batch or shared.after)
if marks then
  need(marks, 'HSET', 'PEXPIRE')
end
-- Messages that are alike and hold no lock need only one command for one key.
if not alike or holds then
  need()
end
if join == 'replace' then
  need(q.delayed, 'ZREM', 'HMGET', 'HINCRBY', 'PEXPIRE')
  need(q.results, 'DEL', 'RPUSH', 'PEXPIRE')
end
if shared then
  note_late(q, shared)
end

-- The key, and the score as text, for messages that are alike and hold no lock, or have no
-- options.
local target, score = q.delayed, due
if due <= now then
  target, score = place_of(q, shared, tick)
end
score = score and string.format('%.0f', score)

-- Messages for one command.
local batch, size = {}, 0

local function flush()
  if size > 0 then
    call(score and 'ZADD' or 'LPUSH', target, unpack(batch, 1, size))
    size = 0
  end
end

-- The 32 bytes ahead of an element give the order of delayed messages.
local function add(arg, front)
  if size >= 400 then
    flush()
  end
  if score then
    size = size + 1
    batch[size] = score
  end
  local element = (ahead == 0 or due > now) and arg or arg:sub(33)
  if score and due <= now then
    element = (front and front .. arg:sub(id_at, id_at + 24) or in_order())
      .. element
  end
  size = size + 1
  batch[size] = element
end

-- Publishes messages that are alike and hold no lock; returns how many were accepted, and the
-- letter of the others.
local function publish_together()
  local w, last = shared, #ARGV
  if w and w.last_tick and w.last_tick < tick then
    return 0, 's'
  end
  local room = limited and space(w)
  if room then
    last = math.max(first_message - 1, math.min(last, first_message - 1 + room))
  end
  if last < first_message then
    return 0, 'f'
  elseif not score and ahead == 0 then
    call('LPUSH', target, unpack(ARGV, first_message, last))
    return last - first_message + 1, 'f'
  end
  local front = w and w.tick and in_tick(w):sub(1, 7)
  for i = first_message, last do
    add(ARGV[i], front)
  end
  flush()
  return last - first_message + 1, 'f'
end

-- Ids of messages that others have joined.
local joined = {}

-- The member of the message with this id that is due at that time.
local function delayed_until(at, id)
  local n, some = 0
  repeat
    some = call('ZRANGEBYSCORE', q.delayed, at, at, 'LIMIT', n, 16)
    for i = 1, #some do
      local w = some[i]:find(id, 1, true) and options(some[i]:sub(33))
      if w and w.id == id then
        return some[i]
      end
    end
    n = n + #some
  until #some < 16
end

-- The lock of the message that a message joins or replaces, and when that one is due, if it was
-- delayed.
local function other(w)
  local held = w and w.key and w.unique == 'queued' and call('HGET', q.locks, 'k' .. w.key)
  if held and mode(held) == 'queued' then
    return held, tonumber(held:match('^%S* %d+ (%d+)$', 34))
  end
end

-- Joins a message to the holder of its key, which becomes due no later; returns whether.
local function join_other(w)
  local held, at = other(w)
  if not held then
    return false
  end
  local soon = math.max(due, now)
  local member = at and at > soon and delayed_until(at, holder(held))
  if member then
    call('ZADD', q.delayed, 'XX', string.format('%.0f', soon), member)
    take_key(q, w.key, holder(held), 'queued', soon > now and soon)
  end
  joined[#joined + 1] = holder(held)
  return true
end

-- Replaces the message with this lock; member: its one in delayed, if it is due there.
local function replace(w, held, member)
  local old = member and options(member:sub(33))
  if not old then
    note_newer(q, holder(held), w.id)
    call('HDEL', q.locks, 'k' .. w.key)
    return
  end
  if old.batch then
    in_batches().check(q, old)
  end
  call('ZREM', q.delayed, member)
  leave(q, old, 'vanish', 'purged')
  tell(q, old, 'purged', 'replaced by ' .. w.id)
end

local function publish(arg)
  local element, w = arg:sub(ahead + 1), nil
  if alike then
    w = setmetatable({ id = arg:sub(id_at, id_at + 31) }, { __index = shared })
  else
    w = options(element)
  end
  if w and w.last_tick and w.last_tick < tick then
    return 's'
  end
  if w and w.after and in_batches().unknown(q, w) then
    return 'u'
  end
  if join == 'join' and w and w.key and join_other(w) then
    return 'j'
  end
  if w or limited then
    flush()
  end
  local held, at
  if join == 'replace' then
    held, at = other(w)
  end
  local member = held and at and delayed_until(at, holder(held))
  if limited and (space(w, member) or 1) <= 0 then
    return 'f'
  end
  if w and (w.line or w.batch) and not alike and is_copy(q, w) then
    element, w = copied(element, w)
  end
  if held then
    replace(w, held, member)
  end
  if w and w.key and not lock(q, w, true, due > now and due) then
    return 'd'
  end
  if w then
    admit(q, element, w, due, arg:sub(1, 32))
  else
    add(arg)
  end
  return held and 'r' or 'a'
end

local accepted, replaced, reply = 0, 0, {}
if alike and not holds then
  accepted, reply = publish_together()
  reply = ('a'):rep(accepted) .. reply:rep(#ARGV - first_message + 1 - accepted)
else
  for i = first_message, #ARGV do
    reply[#reply + 1] = reply[#reply] == 'f' and 'f' or publish(ARGV[i])
    replaced = replaced + (reply[#reply] == 'r' and 1 or 0)
    accepted = accepted + (reply[#reply] == 'a' and 1 or 0)
  end
  flush()
  reply = table.concat(reply) .. table.concat(joined)
end
accepted = accepted + replaced
if accepted > 0 then
  make_known(q, known)
  -- Errors are ignored: the messages matter more than the count.
  redis.pcall('HINCRBY', counters, 'published', accepted)
  if replaced > 0 then
    redis.pcall('HINCRBY', counters, 'replaced', replaced)
  end
  for i = first_attachment, #KEYS do
    call('PERSIST', KEYS[i])
  end
end
mark(marks, slot, before, reply)
return reply
