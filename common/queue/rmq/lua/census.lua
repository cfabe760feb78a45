-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- One step of a census of the messages at one place; census.c says what it proves.
--
-- KEYS q:PLACES rejected [unacked]
-- ARGV where at sign dry tombstone ascends
-- NEEDS LLEN LSET LREM DEL RPUSH PEXPIRE HGET HMGET HSET HDEL ZRANGEBYSCORE GET ZADD LPUSH
--      ZREM
--
--   unacked    if where is 'unacked', that list
--   where      'ready', 'priority', 'delayed', 'unacked' or 'rejected'
--   at, sign   where the census is: in a list, number of messages behind it, in a set, the
--              score of the last message; and a sign of the last message ('' at the beginning)
--   dry        '1': change nothing
--   tombstone  a text that is the element of no list
--   ascends    '1': begin a set with its lowest score, so that late messages leave it in order
--   reply {1 if more follow, else 0; number of late messages; number of groups without a
--         holder although a message is out of line; at; sign; name...}
--         A name is the id of a message that may hold a lock; or its attachments and
--         its id; or the lock of a group without a holder that has messages in line
--
-- A waiting message that is too late goes to rejected with the reason, and releases its
-- locks; the times of the others are noted as the bounds of the next search for late
-- ones.  A message out of line takes its group, if that has no holder.
--
-- At most some 1000 messages, 150 with options, or about 512 KiB, in one call.
-- A crash before: nothing has happened.  After: each message is in its old place, or in
-- rejected only.

-- include place
-- include cursor
-- include headers

dry, ascends = dry == '1', ascends == '1'
local waits = q[where] ~= nil
local key = unacked or q[where] or rejected
local is_list = not waits or where == 'ready'
local tick = not dry and clock(q)
local work, missing, names = 1000, 0, {}

-- The attachments of a message and its id, if the message has any.
local function attached(element)
  local stop = element:sub(1, 5) == '\255\0\190\190J' and element:find('\n', 6, true)
  local head = stop and element:sub(6, stop)
  local has = head and head:find('"Mq-Attach"', 1, true) and ours(head)
  return has and has.Attach and has.Id and has.Attach .. ' ' .. has.Id
end

-- The group that a message is in line for, by its score in delayed.
local function line_of(score)
  local n = tonumber(score) - IN_LINE
  return n >= 0 and string.format('%06x%07x', math.floor(n / 2 ^ 28), n % 2 ^ 28)
end

-- Late messages, with their members in a set, or places in a list.
local found, places = {}, {}
-- Members of followers without an open batch: its counts have expired, or were deleted.
local left_over = {}

-- Looks at a message; returns whether the step has done enough.  line: line_of().  follows:
-- the message waits for batches.
local function see(element, place, line, follows)
  local w = options(element)
  local files = attached(element)
  tick = tick or w and clock(q)
  work = work - ((w or files) and 6 or 1) - #element / 512
  local why = waits and w and (w.expires and now > w.expires and 'expired'
    or w.last_tick and w.last_tick < tick
      and string.format('stale: tick %.0f is over', w.last_tick))
  if w and (w.line or w.key or w.batch) and (dry or not why) then
    names[#names + 1] = w.id
  end
  names[#names + 1] = files or nil
  local group = line or w and w.line
  if why then
    found[#found + 1] = { element = element, w = w, why = why }
    places[#places + 1] = place
    return work <= 0
  elseif waits and w and not dry then
    note_late(q, w)
  end
  if follows and w and w.after and not in_batches().awaited(q, w) then
    left_over[#left_over + 1] = { member = place, w = w }
  end
  -- A rejected message holds no group.
  if group and line and turns_of(q, line, slots_of(q, line))[1] then
    names[#names + 1] = 'g' .. line
  elseif group and not line and where ~= 'rejected'
      and call('HEXISTS', q.locks, 'g' .. group) == 0 then
    missing = missing + 1
    if not dry then
      take_slot(q, slot_field(group, 1), w.id)
    end
  end
  return work <= 0
end

-- Moves the late messages to rejected, before others have the turn of their groups.
local function reject(from)
  if is_list then
    -- Commands that may be refused come first, so a refusal changes nothing.
    call('LREM', q.results .. tombstone, 1, tombstone)
    call('LSET', key, places[1], found[1].element)
  end
  for i = 1, #found do
    call('LPUSH', rejected, with_header(found[i].element, 'Mq-Error', { found[i].why }))
  end
  if is_list then
    mark_places(key, places, tombstone)
    remove_marked(call, key, #places, tombstone, from)
  else
    call('ZREM', key, unpack(places))
  end
  for i = 1, #found do
    leave(q, found[i].w, 'vanish', 'expired')
    tell(q, found[i].w, 'expired', found[i].why)
  end
end

if not dry then
  need()
  -- These commands change nothing, need no memory (see claim.lua), and fail on keys of the
  -- wrong type.
  call('HLEN', q.locks)
  call('ZREM', q.delayed, '')
  call('ZREM', q.priority, '')
  call('LTRIM', q.ready, 0, -1)
end
-- Number of messages behind the census.
local from
if is_list then
  from = locate(key, tonumber(at), 500, 262144, function(element)
    return redis.sha1hex(element) == sign
  end) or 0
elseif sign == '' then
  from = 0
else
  from = count_before(key, at, sign)
  local last = call('ZRANGE', key, from, from)[1]
  from = not ascends and call('ZCARD', key) - from
    or from + (last and last:sub(1, 32) == sign and 1 or 0)
end
local left = call(is_list and 'LLEN' or 'ZCARD', key) - from

local range = not is_list and (ascends and 'ZRANGE' or 'ZREVRANGE')
local looked = go_through(key, range, from, left, function(element, score, n)
  if is_list then
    return see(element, -from - n)
  end
  at, sign = score, element:sub(1, 32)
  score = where == 'delayed' and tonumber(score)
  return see(element:sub(33), element, score and line_of(score),
    score and score >= FOLLOWS and score < IN_LINE)
end)
for i = 1, dry and 0 or #left_over do
  in_batches().start(q, left_over[i].member, left_over[i].w)
end
local stay = looked
if #found > 0 and not dry then
  reject(from)
  stay = looked - #found
end
if is_list then
  at = from + stay
  local last = at > 0 and call('LINDEX', key, -at)
  sign = last and redis.sha1hex(last) or ''
end

return { left > looked and 1 or 0, #found, missing, tostring(at), sign, unpack(names) }
