-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Batches: members, whose ends are counted by name, and followers, which wait in delayed until
-- no member of theirs is open.  Needs leaving.
--
-- A member is open while locks has the field m<its id>: its id, the name, and when that was
-- written, in microseconds.  The counts are a hash, results with 'batch:' and the name behind.

-- include headers

-- Milliseconds that the counts are kept after a change, and after a release.
local KEPT, KEPT_OVER = 30 * 86400000, 7 * 86400000
local ENDINGS = { 'done', 'rejected', 'expired', 'purged', 'pushed', 'unknown' }

local function counts_of(q, name)
  return q.results .. 'batch:' .. name
end

-- The score of followers in delayed: no time, tick or line has one in this range.
local function score_of(name)
  return string.format('%.0f', FOLLOWS + tonumber(redis.sha1hex(name):sub(1, 12), 16))
end

-- Refuses rights, and keys of the wrong type, before anything has changed.
local function check(q, w)
  need(q.locks, 'HINCRBY', 'PEXPIRE')
  call('HLEN', counts_of(q, w.batch))
  call('LLEN', q.ready)
  call('ZCARD', q.priority)
  call('ZCARD', q.delayed)
end

local function open(q, w)
  call('HSET', q.locks, 'm' .. w.id,
    string.format('%s %s %.0f', w.id, w.batch, now_us))
end

local function is_open(q, w)
  return call('HGET', q.locks, 'm' .. w.id) ~= false
end

-- Counts a message that comes into the queue, unless it is open already.  w.returned: how it
-- has ended here before, which does not count any more.
local function enter(q, w)
  if is_open(q, w) then
    return
  end
  local key = counts_of(q, w.batch)
  open(q, w)
  if w.returned and tonumber(call('HGET', key, w.returned) or 0) > 0 then
    call('HINCRBY', key, w.returned, -1)
    call('HSET', key, 'released', 0)
  elseif call('HGET', key, 'released') == '1' then
    -- The followers have been released: a new round begins.
    call('HSET', key, 'total', 1, 'open', 0, 'released', 0)
    for i = 1, #ENDINGS do
      call('HSET', key, ENDINGS[i], 0)
    end
  else
    call('HINCRBY', key, 'total', 1)
  end
  call('HINCRBY', key, 'open', 1)
  call('PEXPIRE', key, KEPT)
end

local function names_of(w)
  return w.after:gmatch('[^,]+')
end

-- The first batch of a follower that has open members; nil: none.
local function awaited(q, w)
  for name in names_of(w) do
    if tonumber(call('HGET', counts_of(q, name), 'open') or 0) > 0 and name ~= w.batch then
      return name
    end
  end
end

-- The first batch of a follower that nobody has ever begun.
local function unknown(q, w)
  for name in names_of(w) do
    if call('HEXISTS', counts_of(q, name), 'total') == 0 then
      return name
    end
  end
end

-- The element of a follower that waits no longer, with the counts of its batches.
local function released(q, element, w)
  local ended = {}
  for name in names_of(w) do
    local key = counts_of(q, name)
    if call('PEXPIRE', key, KEPT_OVER) == 1 then
      local n = { name, call('HGET', key, 'total') or 0 }
      for i = 1, #ENDINGS do
        n[#n + 1] = ENDINGS[i] ~= 'pushed' and (call('HGET', key, ENDINGS[i]) or 0) or nil
      end
      call('HSET', key, 'released', 1)
      ended[#ended + 1] = table.concat(n, ' ')
    end
  end
  return ended[1] and with_header(element, 'Mq-Ended', ended)
    or element
end

-- Lets a follower go where its time, group and priority say.
local function start(q, member, w)
  local element = released(q, member:sub(33), w)
  local new = member:sub(1, 32) .. element
  if w.line then
    call('ZADD', q.delayed, IN_LINE + tonumber(w.line, 16), in_order() .. element)
    call('ZREM', q.delayed, member)
    local slots, limit = slots_of(q, w.line)
    begin_turns(q, turns_of(q, w.line, slots, limit))
  elseif w.due > now then
    call('ZADD', q.delayed, w.due, new)
    if new ~= member then
      call('ZREM', q.delayed, member)
    end
  else
    place(q, element, w)
    call('ZREM', q.delayed, member)
  end
end

-- Lets followers of a batch go, or wait for another one of theirs.
local function release(q, name)
  local score = score_of(name)
  local members = call('ZRANGEBYSCORE', q.delayed, score, score)
  for i = 1, #members do
    local w = options(members[i]:sub(33))
    local other = w and w.after and awaited(q, w)
    if other then
      call('ZADD', q.delayed, score_of(other), members[i])
    elseif w and w.after then
      start(q, members[i], w)
    end
  end
end

-- Counts the end of a member, unless that was counted before.  The last one releases the
-- followers.
local function close(q, id, name, ending)
  if call('HDEL', q.locks, 'm' .. id) == 0 then
    return
  end
  local key = counts_of(q, name)
  if call('PEXPIRE', key, KEPT) == 0 then
    return
  end
  call('HINCRBY', key, ending, 1)
  if call('HINCRBY', key, 'open', -1) <= 0 then
    release(q, name)
  end
end

-- Counts a member that comes into the queue.  Returns the element, with what a follower is
-- told; nil: that waits.
local function admit(q, element, w)
  if w.batch then
    enter(q, w)
  end
  local name = w.after and awaited(q, w)
  if name then
    -- A follower that was told the counts, and rejected, waits again.
    element = may_name(element, 'Mq-Ended') and with_header(element, 'Mq-Ended', nil) or element
    call('ZADD', q.delayed, score_of(name), in_order() .. element)
    return nil
  end
  return w.after and released(q, element, w) or element
end
