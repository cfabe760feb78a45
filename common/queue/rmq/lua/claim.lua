-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Claim messages: promote due ones, then move the first ones to the caller's unacked list.
--
-- KEYS q:PLACES unacked lease paused rate info watch idle [slots] [settings]
-- ARGV max bytes per_s burst queue name why tracked [copy_budget] [connection]
-- REPLY wait_ms role now_ms tick element...
--
--   slots         with settings and connection: see lib/shared.lua
--   max           messages; 0: only look whether the queue is paused, and free slots
--   bytes         about how many may be claimed
--   per_s, burst  of a rate that all consumers share: messages a second, and how many may
--                 be claimed at once after a rest; '': no rate
--   name          of a consumer that waits (see lib/role.lua); '': the consumer does not
--   why, tracked  see lib/role.lua
--   copy_budget   if the disk is short of room, how many bytes may be copied
--   wait_ms       until the next delayed message is due, the pause is over, or the rate
--                 allows more; -1: never; -2: now, as more may follow those that were dropped
--   role          of the consumer from now on, and 1 more if the queue is paused
--   now_ms        the server's clock, unix milliseconds
--   reply         an error if the next message is longer than copy_budget; 0 when the
--                 heartbeat is gone: a cleaner may have been there, and messages that came
--                 into unacked after it would never be found again
--
-- A crash before: nothing has happened.  After: each element is in unacked,
-- where the connection's owner, or a cleaner once its heartbeat is gone,
-- finds it.  A promoted message is claimable.  A message that another one has replaced is dropped
-- instead, and counts as claimed nowhere.  The info counts claimed messages, so
-- that an owner that gets no reply knows how many of its messages are new; a claim
-- that cannot be counted moves nothing.
-- If a consumer dies in its role, or woken, others notice when they look.

-- include basics
-- include bucket
-- include claimed
-- include role

local waits = { watch = watch, idle = idle, name = name, why = why, tracked = tracked,
  now = now }

if call('EXISTS', lease) == 0 then
  return 0
end
local pause = call('PTTL', paused)
local share = slots and share_of(slots, settings, lease, connection, call('LLEN', unacked))
local function left_behind()
  return call('LLEN', q.ready) + call('ZCARD', q.priority)
end

-- If memory is full, Redis refuses a script's first write only if that needs memory, and
-- lets later ones pass.  ZREM of a missing member needs none: claims and acks must go on, as
-- they make room.
if max ~= '0' or share then
  call('ZREM', q.delayed, '')
end
local tick = clock(q)
if max == '0' or pause ~= -2 then
  return claim_none(waits, share, pause, left_behind, tick)
end

local SMALL = 512
local limit, byte_budget = tonumber(max), tonumber(bytes)
local over_budget = false
copy_budget = tonumber(copy_budget) or math.huge
local bucket = bucket_of(rate, per_s, burst)
if bucket then
  limit = math.min(limit, math.floor(bucket.tokens))
end
if share then
  limit = math.min(limit, share.free)
  note_share(share, math.max(limit, 0))
end

local sorted = call('EXISTS', q.priority) == 1
local reply = { -1, 0, now, tick }

-- When the first message that waits for a time is due.
local function first_timed()
  local first = call('ZRANGEBYSCORE', q.delayed, '-inf', AT_TICK - 1,
    'WITHSCORES', 'LIMIT', 0, 1)
  return tonumber(first[2])
end
local function tick_waits()
  return tick > 0
    and call('ZCOUNT', q.delayed, AT_TICK, AT_TICK + tick) > 0
end
local timed = first_timed()
local due = tick_waits() or timed and timed <= now

-- last: the place in the reply of the last message claimed.
local last, sure = TICK, false

-- Number of messages that may still be claimed.
local function left()
  return limit + TICK - last
end

-- Claims up to n small messages at once; returns how many.  A claim spends most of its time
-- here, so each message goes into one table only.
local function claim_small(n)
  local part, first, budget = call('LRANGE', q.ready, -n, '-1'), last + 1, byte_budget
  local to = last
  for i = #part, 1, -1 do
    local element = part[i]
    local size = #element
    if size > SMALL or budget <= 0 then
      break
    end
    to, budget = to + 1, budget - size
    reply[to] = element
  end
  n = to - last
  if n > 0 then
    -- This LTRIM removes nothing; without the right to remove, nothing is copied.
    sure = sure or call('LTRIM', q.ready, '0', '-1')
    call('LPUSH', unacked, unpack(reply, first, to))
    call('LTRIM', q.ready, '0', -n - 1)
    last, byte_budget = to, budget
  end
  return n
end

-- Long messages are moved one by one, which takes the server more time, but puts no copy of
-- them into its log and its replicas.  Behind a long message, the next may be long, too.
local function claim_ready()
  local size = 1
  while left() > 0 and byte_budget > 0 do
    local n = math.min(size, left())
    local small = n < 4 and 0 or claim_small(n)
    if small == 0 then
      local element = call('LMOVE', q.ready, unacked, 'RIGHT', 'LEFT')
      if not element then
        break
      end
      last, byte_budget = last + 1, byte_budget - #element
      reply[last] = element
      small = #element <= SMALL and n or 0
    end
    size = small < n and 1 or math.min(4 * size, 64)
  end
end

-- Returns functions that claim from all of the queue's keys, and that free keys of messages.
-- Most claims need neither, and take less time than it takes to define them.
local function beyond_ready()
-- include leaving
-- include promote

  -- Claims messages of a set.  Slices begin small, since messages may be long; in delayed, they
  -- end before a message that belongs into priority.
  local function claim_sorted(set, low, high)
    local size = 1
    while left() > 0 and byte_budget > 0 do
      local members = call('ZRANGEBYSCORE', set, low, high,
        'LIMIT', 0, math.min(size, left()))
      local batch, budget = {}, byte_budget
      for i = 1, #members do
        local element = members[i]:sub(33)
        over_budget = over_budget or #element > copy_budget
        if budget <= 0 or #element > copy_budget
            or set == q.delayed and may_be_sorted(element) then
          break
        end
        copy_budget = copy_budget - #element
        batch[i] = element
        budget = budget - #element
      end
      if not batch[1] then
        break
      end
      local rank = call('ZRANK', set, members[1])
      -- This removes nothing; without the right to remove, nothing is copied.
      call('ZREMRANGEBYRANK', set, 1, 0)
      call('LPUSH', unacked, unpack(batch))
      call('ZREMRANGEBYRANK', set, rank, rank + #batch - 1)
      for i = 1, #batch do
        reply[last + i] = batch[i]
      end
      last, byte_budget = last + #batch, budget
      size = math.min(2 * size, 64)
    end
  end

  local function claim_all()
    if due and not sorted and call('LLEN', q.ready) == 0 then
      claim_sorted(q.delayed, '-inf', now)
    end
    if due and left() > 0 and byte_budget > 0 then
      -- If many are due together, more than 250 at once would take too long.
      local _, _, budget = promote(q, math.min(left(), 250),
        math.min(byte_budget, 262144), copy_budget)
      over_budget, copy_budget = over_budget or not budget, budget or 0
    end
    if call('EXISTS', q.priority) == 0 then
      claim_ready()
      return
    end
    claim_sorted(q.priority, '-inf', '(0')
    claim_ready()
    claim_sorted(q.priority, '(0', '+inf')
  end

-- include results

  -- Frees a key that is kept until its message is claimed, or drops a message that another one
  -- has replaced; returns whether.
  local function drop(element, w)
    if not (w and w.key) then
      return false
    end
    local held = call('HGET', q.locks, 'k' .. w.key)
    if held and holder(held) == w.id then
      unlock(q, w, 'start', held)
      return false
    end
    local newer = newer_than(q, w)
    if not newer then
      return false
    end
    need(unacked, 'LREM')
    need(q.locks, 'HDEL', 'HMGET', 'HSET')
    need(q.results, 'DEL', 'RPUSH', 'PEXPIRE')
    if w.batch then
      in_batches().check(q, w)
    end
    call('LREM', unacked, 1, element)
    -- Errors are ignored: the message has left already.
    pcall(leave, q, w, 'vanish', 'purged')
    pcall(tell, q, w, 'purged', 'replaced by ' .. newer)
    return true
  end

  -- Frees the keys of the messages claimed from place `first` of the reply on, and drops those
  -- that others have replaced; returns how many.
  local function unlock_all(first)
    local to = first - 1
    for i = first, last do
      local w = may_name(reply[i], 'Mq-Key') and options(reply[i])
      -- Errors are ignored: the message is claimed already.
      local good, gone = pcall(drop, reply[i], w)
      if not (good and gone) then
        to = to + 1
        reply[to] = reply[i]
      end
    end
    local n = last - to
    last = to
    return n
  end

  return claim_all, unlock_all
end

local claim_all, unlock_all
if due or sorted then
  claim_all, unlock_all = beyond_ready()
end

local function names_key(first)
  for i = first, last do
    if may_name(reply[i], 'Mq-Key') then
      return true
    end
  end
end

-- Messages that were dropped, of which a claim drops about MOST.
local MOST, dropped = 100, 0

-- Claims messages once; returns whether some of them were dropped.
local function claim()
  local first = last + 1
  -- If a later command is refused, messages that have moved are claimed.
  local good, refused = pcall(claim_all or claim_ready)
  if not good and last == TICK and dropped == 0 then
    error(refused, 0)
  end
  local n = 0
  if last >= first and call('EXISTS', q.locks) == 1 and names_key(first) then
    if not unlock_all then
      claim_all, unlock_all = beyond_ready()
    end
    n = unlock_all(first)
  end
  for i = last + 1, #reply do
    reply[i] = nil
  end
  dropped = dropped + n
  return good and n > 0
end

local again_at_once = false
-- count_claimed(0): a refusal to count comes before the first move.
if limit > 0 and (due or sorted or call('EXISTS', q.ready) == 1) then
  count_claimed(0)
  local again = claim()
  while again and left() > 0 and byte_budget > 0 and dropped < MOST do
    -- The next of a group, or a follower, may have come anywhere.
    due, sorted = true, true
    again = claim()
  end
  again_at_once = again and left() > 0
end
if over_budget and last == TICK then
  return redis.error_reply('no room to copy the next message')
end
if last > TICK then
  count_claimed(last - TICK)
end

local wait = bucket and bucket_take(bucket, last - TICK) or -1

local full = last - TICK >= tonumber(max) or byte_budget <= 0
if share and last - TICK < limit then
  note_share(share, last - TICK)
end
reply[ROLE] = role(waits, last - TICK, full, left_behind, share and share.free - last + TICK)

-- The commands of first_timed() and tick_waits() have passed above, so none is refused.
if due then
  timed = first_timed()
end
if due and tick_waits() then
  reply[WAIT_MS] = 0
elseif timed then
  reply[WAIT_MS] = math.max(0, math.ceil(timed - now))
end
reply[WAIT_MS] = again_at_once and -2 or math.max(reply[WAIT_MS], wait)
return reply
