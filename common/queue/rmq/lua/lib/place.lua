-- Where a message waits, and what it holds meanwhile.
--
-- A queue's keys are six, in this order; mq-layout(7) says what is in each:
--
--   ready     list: claimable, in the order of publishing
--   priority  sorted set: claimable before the list, with a score below 0, or after it
--   delayed   sorted set: not claimable yet, or in line for the group
--   locks     hash: who holds which group or key, and when messages are too late
--   clock     the tick, a number
--   results   a prefix: with an id, the key of its result; by itself, a key that exists
--             once anybody has waited for a result
--
-- Members of the sorted sets are 32 bytes that give the order among equal scores, then the
-- element.

-- include leaving

-- A queue with messages is known, even if somebody has deleted it meanwhile.
-- Errors are ignored: the messages are more important than the list of names, which
-- a cluster may have on another node.
local function make_known(q, queues)
  local name = q.ready:match('%[(.*)%]')
  if name then
    redis.pcall('SADD', queues, name)
  end
end

-- Checks the rights for refresh_locks(), place() and lock().
local function need_admit(q)
  need(q.locks, 'GET', 'HGET', 'HSET', 'HDEL', 'ZADD', 'LPUSH', 'RPUSH')
end

-- due: when the message is, unless it can be claimed at once.
local function take_key(q, key, id, till, due)
  call('HSET', q.locks, 'k' .. key, string.format('%s %s %.0f', id, till, now_us)
    .. (due and string.format(' %.0f', due) or ''))
end

-- No walk for messages that are too late begins before one may be.
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

-- If a message goes the other way than from delayed to ready to unacked, its locks are
-- written anew, since a census may miss it, and releases only locks that stay the same;
-- see census.c.  The locks are written before the message moves: a refusal has moved
-- nothing then.
local function refresh_locks(q, w)
  if not w then
    return
  end
  note_late(q, w)
  if own(q, 'g', w.line, w) then
    take_group(q, w.line, w.id)
  end
  local held = own(q, 'k', w.key, w)
  if held then
    take_key(q, w.key, w.id, mode(held))
  end
end

-- Whether a message with its id holds its group, or its key, here.
local function is_copy(q, w)
  local held = own(q, 'g', w.line, w)
  if not held then
    held = own(q, 'k', w.key, w)
    -- The holder of a key that is kept for a time may be gone.
    held = held and not tonumber(mode(held))
  end
  return held
end

-- Whether its key is free, or, unless it is new here, its own; then it has it
-- from now on.  due: as for take_key().
local function lock(q, w, new, due)
  local held = call('HGET', q.locks, 'k' .. w.key)
  if held and (new or holder(held) ~= w.id) then
    local till = tonumber(mode(held))
    if not till or till > now then
      return false
    end
  end
  local ms = tonumber(w.unique)
  -- Keys that are kept for some time have nobody to let go of them.  Whoever adds
  -- one looks at some others, so that not many more are there than are kept.
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

-- A message comes into a queue where it was not.  It takes its key if that is
-- free, and goes on without it if not; a key with a time ends with that.  Returns
-- the message as it is then, and what it asks for.
local function prepare(q, element, w)
  if is_copy(q, w) then
    element, w = copied(element, w)
  end
  if w.key and not tonumber(w.unique) then
    lock(q, w)
  end
  return element, w
end

-- A message comes into a queue, with the right to its key.  unique is for the
-- time that it has to wait until it is due, if it has; first: before all others
-- of its kind.
local function admit(q, element, w, due, unique, first)
  if w and w.reply_to then
    -- A program that drops messages unseen must not drop this one unseen.
    call('SET', q.results, '1')
  end
  if w then
    note_late(q, w)
  end
  if w and w.line then
    -- It takes its group if that is free, or stands in line.
    local held = call('HGET', q.locks, 'g' .. w.line)
    if held and holder(held) ~= w.id then
      call('ZADD', q.delayed, IN_LINE + tonumber(w.line, 16),
        in_order() .. element)
      return
    end
    take_group(q, w.line, w.id)
  end
  if due > now then
    call('ZADD', q.delayed, due, unique .. element)
  else
    place(q, element, w, first)
  end
end

-- include results
