-- Where a message waits, and what it holds meanwhile.
--
-- A queue's keys are six, in this order:
--
--   ready     list: claimable, in the order of publishing
--   priority  sorted set: claimable, too.  Score: minus the priority, so those
--             below 0 come before the list and the others after it; or, for
--             messages of a tick, the tick minus 2^52, so they come first
--   delayed   sorted set: not claimable yet.  Score: the unix milliseconds
--             when it is due; 2^50 + the tick that it waits for; 2^52 + 52 bits
--             of its group's hash, while others of the group are before it
--   locks     hash: 'g' + 13 hex digits of a group's hash: the id of its
--             message that is not in line; 'k' + a key: the id of the message
--             that has it, a blank, and 'queued', 'done', or the unix
--             milliseconds until which it is kept.  Behind either come a blank
--             and when it was taken, or refreshed, in unix microseconds.
--             'e' and 't': no message that waits expires before this time, or
--             has a last tick below this; 'E' and 'T': the same of those that
--             were there when a cleaner began to look
--   clock     the tick, a number
--   results   a prefix: with an id, the key of its result; by itself, a key
--             that exists once anybody has waited for a result
--
-- Members of the sorted sets are 32 bytes that give the order among equal
-- scores, then the element.

-- include rights

local call = redis.call
local now_us = call('TIME')
now_us = now_us[1] * 1000000 + now_us[2]
local now = math.floor(now_us / 1000)
local AT_TICK, TICKS, IN_LINE = 2 ^ 50, -2 ^ 52, 2 ^ 52
local LARGE = 1048576
local serial = 0

local function queue_keys(i)
  return { ready = KEYS[i], priority = KEYS[i + 1], delayed = KEYS[i + 2],
    locks = KEYS[i + 3], clock = KEYS[i + 4], results = KEYS[i + 5] }
end

-- A queue with messages is known, even if somebody has deleted it meanwhile.
-- Errors are ignored: the messages are more important than the list of names.
local function make_known(q, queues)
  redis.pcall('SADD', queues, q.ready:match('%[(.*)%]'))
end

-- Checks the rights for put_back() and lock(), leave(), and keep_result().
local function need_admit(q)
  need(q.locks, 'GET', 'HGET', 'HSET', 'HDEL', 'ZADD', 'LPUSH', 'RPUSH')
end

local function need_leave(q)
  need(q.locks, 'HGET', 'HSET', 'HDEL', 'ZRANGEBYSCORE', 'GET', 'ZADD', 'LPUSH',
    'ZREM')
end

local function need_tell(q)
  need(q.results, 'DEL', 'RPUSH', 'PEXPIRE')
end

local function clock(q)
  return tonumber(call('GET', q.clock)) or 0
end

-- include options

local stamp
local function in_order()
  serial = serial + 1
  stamp = stamp or string.format('n%016.0f', now_us)
  return stamp .. string.format('%06d000000000', serial)
end

-- Before all that came in order; the last one first.
local function in_front()
  serial = serial + 1
  return string.format('f%016.0f%06.0f000000000', 1e16 - now_us, 999999 - serial)
end

-- Higher priorities first, then fewer attempts, then the age; a copy comes last.
local function in_tick(w, is_copy)
  return string.format('%03.0f%04.0f', 100 - w.priority, w.attempts or 0)
    .. (not is_copy and w.id or in_order()):sub(1, 25)
end

-- The message that holds a lock, and how long it keeps a key.
local function holder(held)
  return held and held:sub(1, 32)
end

local function mode(held)
  return held:match('^%S*', 34)
end

local function take_group(q, line, id)
  call('HSET', q.locks, 'g' .. line, string.format('%s %.0f', id, now_us))
end

local function take_key(q, key, id, till)
  call('HSET', q.locks, 'k' .. key,
    string.format('%s %s %.0f', id, till, now_us))
end

-- No walk for messages that are too late begins before one may be.
local function note_late(q, w)
  local function note(field, at)
    local known = at and tonumber(call('HGET', q.locks, field) or nil)
    if at and not (known and known <= at) then
      call('HSET', q.locks, field, string.format('%.0f', at))
    end
  end
  note('e', w.expires)
  note('t', w.last_tick)
end

-- Messages go from delayed to ready to unacked.  The locks of one that goes the
-- other way are written anew: a repair, whose walk may have missed it, sees by
-- that that it must not let go of them; see check_locks.lua.
local function refresh_locks(q, w)
  note_late(q, w)
  local held = w.line and call('HGET', q.locks, 'g' .. w.line)
  if held and holder(held) == w.id then
    take_group(q, w.line, w.id)
  end
  held = w.key and call('HGET', q.locks, 'k' .. w.key)
  if held and holder(held) == w.id then
    take_key(q, w.key, w.id, mode(held))
  end
end

-- A message whose id another one here has gets a new id, of the same age, and
-- keeps the old one in another header.  A quote inside of a value has a backslash
-- before it, so the name is found nowhere else.
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

-- Whether a message with its id holds its group, or its key, here.
local function is_copy(q, w)
  local held = w.line and call('HGET', q.locks, 'g' .. w.line)
  if held and holder(held) == w.id then
    return true
  end
  held = w.key and call('HGET', q.locks, 'k' .. w.key)
  -- The holder of a key that is kept for a time may be gone.
  return held and holder(held) == w.id and not tonumber(mode(held))
end

-- Puts a message into a sorted set by its tick, beside one with the same id.
local function place_by_tick(key, score, element, w)
  if call('ZADD', key, 'NX', score, in_tick(w) .. element) == 0 then
    element = copied(element, w)
    call('ZADD', key, score, in_tick(w, true) .. element)
  end
end

-- Claims leave large messages to commands outside of scripts; see claim.lua.
local function note_large(q)
  redis.pcall('SET', q.ready:sub(1, -6) .. 'large', 1, 'EX', 604800)
end

-- Whose time it is, to where it is claimed from.
local function place(q, element, w, first)
  if w and w.tick and w.tick > clock(q) then
    place_by_tick(q.delayed, AT_TICK + w.tick, element, w)
  elseif w and w.tick then
    place_by_tick(q.priority, TICKS + w.tick, element, w)
  elseif w and w.priority ~= 0 then
    call('ZADD', q.priority, -w.priority,
      (first and in_front() or in_order()) .. element)
  else
    call(first and 'RPUSH' or 'LPUSH', q.ready, element)
    if #element >= LARGE then
      note_large(q)
    end
  end
end

-- The same for what comes back from a consumer.  It comes last: what is refused
-- before it has moved nothing.
local function put_back(q, element, w, first)
  if w then
    refresh_locks(q, w)
  end
  place(q, element, w, first)
end

-- Whether a message may belong into the sorted set: much cheaper than options().
local function may_be_sorted(element)
  return may_name(element, 'Mq-Priority') or may_name(element, 'Mq-From-Tick')
end

-- Up to max messages, or about room bytes, whose time or tick has come.
local function promote(q, max, room)
  local moved = 0
  -- Keys of the wrong type are refused before anything has moved.
  call('LLEN', q.ready)
  call('ZCARD', q.priority)
  local tick = clock(q)
  local function from(low, high)
    -- Few at first: nobody knows how long the next ones are.
    local size, n = 1, 1
    while n > 0 and moved < max and room > 0 do
      local due = call('ZRANGEBYSCORE', q.delayed, low, high,
        'LIMIT', 0, math.min(size, max - moved))
      local plain = {}
      n = #due
      local rank = n > 0 and call('ZRANK', q.delayed, due[1])
      if rank and moved == 0 then
        need(q.delayed, 'LPUSH', 'ZREMRANGEBYRANK')
      end
      for i = 1, n do
        local element = due[i]:sub(33)
        local w = may_be_sorted(element) and options(element)
        if w and (w.tick or w.priority ~= 0) then
          place(q, element, w)
        else
          plain[#plain + 1] = element
        end
        room = room - #element
        if #element >= LARGE then
          note_large(q)
        end
      end
      if plain[1] then
        call('LPUSH', q.ready, unpack(plain))
      end
      if rank then
        call('ZREMRANGEBYRANK', q.delayed, rank, rank + n - 1)
      end
      moved = moved + n
      size = math.min(2 * size, 64)
    end
  end
  from('-inf', now)
  if tick > 0 then
    from(AT_TICK, AT_TICK + tick)
  end
  return moved, room
end

-- Keys that are kept for some time have nobody to let go of them.  Whoever adds
-- one looks at some others, so that not many more are there than are kept.
local function forget_some(q)
  local some = call('HRANDFIELD', q.locks, 4, 'WITHVALUES')
  for i = 1, #some, 2 do
    local till = some[i]:sub(1, 1) == 'k' and tonumber(mode(some[i + 1]))
    if till and till <= now then
      call('HDEL', q.locks, some[i])
    end
  end
end

-- Whether its key is free, or, unless it is new here, its own; then it has it
-- from now on.
local function lock(q, w, new)
  local held = call('HGET', q.locks, 'k' .. w.key)
  if held and (new or holder(held) ~= w.id) then
    local till = tonumber(mode(held))
    if not till or till > now then
      return false
    end
  end
  local ms = tonumber(w.unique)
  if ms then
    forget_some(q)
  end
  take_key(q, w.key, w.id, ms and string.format('%.0f', now + ms) or w.unique)
  return true
end

-- Whether its group is its own, or free, and then its own from now on.  Else
-- it stands in line.
local function join(q, element, w)
  local held = call('HGET', q.locks, 'g' .. w.line)
  if held and holder(held) ~= w.id then
    call('ZADD', q.delayed, IN_LINE + tonumber(w.line, 16),
      in_order() .. element)
    return false
  end
  take_group(q, w.line, w.id)
  return true
end

-- Refuses keys of the wrong type, before anything is there.
local function check_types(q)
  call('LLEN', q.ready)
  call('ZCARD', q.priority)
  call('ZCARD', q.delayed)
  call('HLEN', q.locks)
  clock(q)
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
  if w and w.line and not join(q, element, w) then
    return
  end
  if due > now then
    call('ZADD', q.delayed, due, unique .. element)
  else
    place(q, element, w, first)
  end
end

-- Frees the key of a message: for 'queued' when the message starts, for 'done' when
-- it ends, and always when it vanishes.
local function unlock(q, w, when)
  local held = call('HGET', q.locks, 'k' .. w.key)
  if held and holder(held) == w.id and (when == 'vanish'
      or mode(held) == 'queued' or mode(held) == when) then
    call('HDEL', q.locks, 'k' .. w.key)
  end
end

-- include turns

-- A message has left its queue: 'done' (or rejected), or 'vanish' when nobody
-- has run it.  turn: as of turn_after(), if that is known.
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

-- include results
