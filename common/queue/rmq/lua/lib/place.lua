-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Places a message in a queue, with its group and its key.
--
-- A queue's keys are six, in this order; mq-layout(7) says what is in each:
--
--   ready     list: claimable, in the order of publishing
--   priority  sorted set: claimable before the list, with a score below 0, or after it
--   delayed   sorted set: not claimable yet, or in line for the group
--   locks     hash: the holder of each group and key, and when messages are too late
--   clock     the tick, a number
--   results   a prefix: with an id, the key of its result; alone, a key that exists once
--             anybody has waited for a result
--
-- Members of the sorted sets are 32 bytes that give the order among equal scores, then the
-- element.

-- include leaving

-- Lists the name of a queue with messages, which may have been deleted meanwhile.  Errors are
-- ignored: messages matter more than the list, which a cluster may have on another node.
local function make_known(q, queues)
  local name = q.ready:match('%[(.*)%]')
  if name then
    redis.pcall('SADD', queues, name)
  end
end

-- due: when the message can be claimed, unless now.
local function take_key(q, key, id, till, due)
  call('HSET', q.locks, 'k' .. key, string.format('%s %s %.0f', id, till, now_us)
    .. (due and string.format(' %.0f', due) or ''))
end

-- Notes that a newer message has replaced one that waits; see newer_than().
local function note_newer(q, id, newer)
  call('HSET', q.locks, 'r' .. id, string.format('%s %s %.0f', id, newer, now_us))
end

-- Before the lowest bound, no cleaner looks for messages that are too late.
local function note_bound(q, field, at)
  local known = at and tonumber(call('HGET', q.locks, field) or nil)
  if at and not (known and known <= at) then
    call('HSET', q.locks, field, string.format('%.0f', at))
  end
end

local function note_late(q, w)
  note_bound(q, 'e', w.expires)
  note_bound(q, 't', w.last_tick)
end

-- How many slots a group may take, and at most has had.
local limits = {}
local function limits_of(q)
  limits[q.locks] = limits[q.locks] or { slot_limits(call('HGET', q.locks, 's') or nil) }
  return unpack(limits[q.locks])
end

-- The number of the slot that a message holds, and its lock; or of the first free one; or
-- nothing, if all are held by others.
local function find_slot(q, w)
  local n, most = 1, 1
  while n <= most do
    local held = call('HGET', q.locks, slot_field(w.line, n))
    if not held or holder(held) == w.id then
      return n, held
    end
    if n == 1 then
      most = select(2, limits_of(q))
    end
    n = n + 1
  end
end

-- The field of the slot that a message holds, or nil.
local function own_slot(q, w)
  if w.line then
    local n, held = find_slot(q, w)
    return held and slot_field(w.line, n)
  end
end

-- The field of the slot that a message may take, its own or a free one; nil: it has to stand in
-- line.
local function slot_for(q, w)
  local n, held = find_slot(q, w)
  if n and (n == 1 or held or n <= limits_of(q) and not first_in_line(q, w.line, 1)[1]) then
    return slot_field(w.line, n)
  end
end

-- If a message goes any way but from delayed to ready to unacked, a census may miss it; so its
-- locks are written anew, which a census then leaves alone (see census.c), and before the
-- message moves: a refusal has moved nothing.
local function refresh_locks(q, w)
  if not w then
    return
  end
  note_late(q, w)
  local slot = own_slot(q, w)
  if slot then
    take_slot(q, slot, w.id)
  end
  local held = own(q, 'k', w.key, w)
  if held then
    take_key(q, w.key, w.id, mode(held))
  end
  if w.batch and in_batches().is_open(q, w) then
    in_batches().open(q, w)
  end
end

-- Whether a message with the same id holds the group or the key here, or is open in a batch.
local function is_copy(q, w)
  local held = own_slot(q, w)
  if w.batch and not held then
    held = in_batches().is_open(q, w)
  end
  if not held then
    held = own(q, 'k', w.key, w)
    -- A key that is kept for a time outlives its message.
    held = held and not tonumber(mode(held))
  end
  return held
end

-- Takes the key of a message, if that is free, or, unless the message is new here, its own;
-- returns whether.  A message that a newer one has replaced takes none.  due: as for take_key().
local function lock(q, w, new, due)
  local both = new and { call('HGET', q.locks, 'k' .. w.key) }
    or call('HMGET', q.locks, 'k' .. w.key, 'r' .. w.id)
  local held = both[1]
  if both[2] then
    note_newer(q, w.id, both[2]:sub(34, 65))
    return false
  end
  if held and (new or holder(held) ~= w.id) then
    local till = tonumber(mode(held))
    if not till or till > now then
      return false
    end
  end
  local ms = tonumber(w.unique)
  -- Keys that are kept for a time are not freed by an end.  Each new one frees some that are
  -- over, so that most of those in the hash are kept still.
  local some = ms and call('HRANDFIELD', q.locks, 4, 'WITHVALUES') or {}
  for i = 1, #some, 2 do
    local till = some[i]:sub(1, 1) == 'k' and tonumber(mode(some[i + 1]))
    if till and till <= now then
      call('HDEL', q.locks, some[i])
    end
  end
  take_key(q, w.key, w.id, ms and string.format('%.0f', now + ms) or w.unique,
    due)
  return true
end

-- Prepares a message for a queue where it was not: takes its key, if that is free and not kept
-- for a time.  Returns the message, maybe with another id, and its options.
local function prepare(q, element, w)
  if is_copy(q, w) then
    element, w = copied(element, w)
  end
  if w.key and not tonumber(w.unique) then
    lock(q, w)
  end
  return element, w
end

-- Puts a message with its key into a queue: to wait until `due`, with `unique` before the
-- element, or to be claimed; first: before all others of its kind.
local function admit(q, element, w, due, unique, first)
  if w and w.reply_to then
    -- If this key exists, programs do not drop messages of the queue unseen.
    call('SET', q.results, '1')
  end
  if w then
    note_late(q, w)
  end
  if w and (w.batch or w.after) then
    element = in_batches().admit(q, element, w)
    if not element then
      return
    end
  end
  if w and w.line then
    -- A message takes its group if that is free, or stands in line.
    local slot = slot_for(q, w)
    if not slot then
      call('ZADD', q.delayed, IN_LINE + tonumber(w.line, 16),
        in_order() .. element)
      return
    end
    take_slot(q, slot, w.id)
  end
  if due > now then
    call('ZADD', q.delayed, due, unique .. element)
  else
    place(q, element, w, first)
  end
end

-- include results
