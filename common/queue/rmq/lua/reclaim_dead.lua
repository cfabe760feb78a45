-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- One step of taking a queue from a dead connection.
--
-- KEYS q:PLACES known connections=listed unacked heartbeat=lease consumers holders
--      taken=slots listed=queues other-consumers other-unacked | [rejected] [settings] [info]
--      [running] [notify=*] [notified=*]
-- ARGV name connection dry share [attempts] [from] [slots] [host] [limit] [listener]
--      [told]
-- NEEDS RPOP LINDEX LSET LREM RPUSH DEL PEXPIRE HGET HMGET HSET HDEL ZRANGEBYSCORE GET ZADD
--      LPUSH ZREM
--
--   rejected  and the keys behind it, of a consumer of these tools
--   notify    and notified, of a notice (see lib/notices.lua)
--   name      of the queue
--   dry       '1': change nothing, only count; 'killed': the same, and the process of the
--             connection has ended, so the heartbeat does not count
--   share     messages that this step may move (and 2 KiB for each)
--   attempts  of a consumer of these tools, how many runs a message may have by default
--   from      number of the oldest messages that earlier steps looked at
--   slots, host, limit, listener  slots, host, attempts and notify of the info; '': none
--   told      the queue for notices of rejected messages ('': none), if the caller knows it
--   reply {left, returned, crashed, rejected, 1 if the connection was unlisted, number of the
--         oldest messages looked at, 1 if the step has moved its share}; with nothing done,
--         left is -1 if the heartbeat is back, and -2 if the queue has keys in the form for a
--         cluster: only a cleaner of that form finds the messages there, by the names listed
--         here.  Or the name of a queue, and nothing done: `told` must be that, with the keys
--         of a notice for it, or ''.
--
-- The `slots` oldest messages may have been running.  The others go back to the front of
-- ready, or of their priority or tick, newest first, so that the oldest ends up in front.
-- Messages without a run left go to the newest end of rejected, the oldest first.  Then the
-- rest of the oldest go back, with one attempt more in their headers.  If none is left, the
-- connection does not have the queue any more, and is removed if that was its last.
--
-- Messages that may have been running are found by their number, so none of them leaves
-- before the others have gone.  A waiting consumer must know of the crash before it runs
-- messages behind.  So all go in one step if possible, and a step that has a small share,
-- because of other steps, leaves a long list for later.
--
-- A crash between two calls leaves connection and queue listed, and the rest of the messages
-- unacked: the next cleaner goes on.  Each message, and its locks, are as before or as after.

-- include asking

local call, ready = redis.call, q.ready
local killed = dry == 'killed'
dry, share, from = dry ~= '', tonumber(share), tonumber(from or 0)
local RUNS, bytes = 1000000, 2048 * share

-- A number in a text, at most max; 0 if the text has none.
local function count(text, max)
  return type(text) == 'string' and text:find('^%d+$')
    and math.min(tonumber(text), max) or 0
end

-- Gives back up to max messages, the newest first, and stops before one with options; returns
-- how many.
local function give_back_plain(max)
  local moved = 0
  while moved < max and bytes > 0 do
    local element = call('LMOVE', unacked, ready, 'LEFT', 'RIGHT')
    if asking(element) then
      call('LMOVE', ready, unacked, 'RIGHT', 'LEFT')
      break
    end
    moved, bytes = moved + 1, bytes - #element
  end
  share = share - moved
  return moved
end

-- Moves messages with any options, and crashed ones; returns how many went back, how many of
-- them with a new header, and how many were rejected.  Most steps do not need this function,
-- and take less time than it takes to define the functions in it.
local function move_any(others, crashed)
-- include place
-- include give_back
-- include notices
-- include headers

  local SIGNATURE, LONGEST = '\255\0\190\190J', 262144

  -- The headers of a message, and its payload; nil: other programs cannot read them, either.
  local function parse(element)
    if element:sub(1, 5) ~= SIGNATURE then
      return {}, element
    end
    local stop = element:find('\n', 6, true)
    if not stop or stop > LONGEST then
      return nil
    end
    return parse_headers(element:sub(6, stop)), element:sub(stop + 1)
  end

  local function host_member()
    return host ~= '' and '"host":' .. json(as_text(host)) .. ',' or ''
  end

  local function write(headers)
    return SIGNATURE .. '{' .. write_headers(headers) .. '}\n'
  end

  -- An id as in mq-layout(7): the time, and characters that differ.
  local function new_id()
    serial = serial + 1
    local us, id = now_us, redis.sha1hex(now_us .. unacked .. serial):sub(1, 22)
    for _ = 1, 10 do
      id = ('0123456789abcdefghijklmnopqrstuvwxyz'):sub(us % 36 + 1, us % 36 + 1) .. id
      us = math.floor(us / 36)
    end
    return id
  end

  local function is_last(headers)
    local own = count(value(headers, 'Mq-Attempts'), RUNS)
    return count(value(headers, 'Mq-Attempt'), RUNS) + 1
      >= (own > 0 and math.min(own, limit) or limit)
  end

  -- The header of a message whose consumer died during its run, and the reason.
  local function after_crash(headers)
    local id, attempt = value(headers, 'Mq-Id'), count(value(headers, 'Mq-Attempt'), RUNS) + 1
    local why = note_crash(headers, now, attempt, is_last(headers), host_member())
    if type(id) ~= 'string' or #id ~= 32 or id:find('[^%w:]') then
      headers['Mq-Id'] = { new_id() }
    end
    headers['Mq-Attempt'] = { string.format('%.0f', attempt) }
    return write(headers), why
  end

  local function send_rejection(headers, why)
    local id, field = new_id(), ''
    if notify:sub(-10) == '::outgoing' then
      field = id .. '000001 push ' .. listener
    end
    send_notice(notify, notified, known, field, write({ ['Mq-Id'] = { id },
      ['Mq-Notice'] = { as_text(name) } }) .. string.format('{"id":"%s","queue":%s,'
      .. '"state":"rejected","text":"%s","attempts":%s,%s"finished_ms":%.0f}',
      headers['Mq-Id'][1], json(as_text(name)), why, headers['Mq-Attempt'][1],
      host_member(), now))
  end

  local function reject(element, at, headers, payload)
    local header, why = after_crash(headers)
    local moved, mark = header .. payload, redis.sha1hex(now_us .. unacked)
    call('LPUSH', rejected, moved)
    -- The message leaves by its place, as equal ones may be there.
    call('LSET', unacked, at, mark)
    call('LREM', unacked, at, mark)
    leave(q, options(element), 'done', 'rejected')
    tell(q, options(moved), 'rejected', why)
    if notify and not value(headers, 'Mq-Notice') then
      send_rejection(headers, why)
    end
  end

  -- Rejects, or in a dry run counts, messages without a run left among the `last` oldest;
  -- returns how many, and how many of the oldest are left.
  local function reject_exhausted(last)
    local out = 0
    while from < last and not is_enough() do
      local element = call('LINDEX', unacked, -1 - from)
      local headers, payload = parse(element)
      spend(1, #element)
      if not headers or not is_last(headers) then
        from = from + 1
      elseif dry then
        from, out = from + 1, out + 1
      else
        reject(element, -1 - from, headers, payload)
        spend(WEIGHT, 0)
        last, out = last - 1, out + 1
      end
    end
    return out, last
  end

  -- Gives back n crashed messages, the newest first; returns how many went back, how many of
  -- them with a new header, and how many were rejected, if another cleaner had moved some.
  local function give_back_crashed(n)
    local back, crashed, out = 0, 0, 0
    while back + out < n and not is_enough() do
      local element = call('LINDEX', unacked, 0)
      local headers, payload = parse(element)
      spend(WEIGHT, #element)
      if headers and is_last(headers) then
        reject(element, 0, headers, payload)
        out = out + 1
      elseif headers then
        local moved = after_crash(headers) .. payload
        give_back(q, moved, options(moved))
        call('LTRIM', unacked, 1, -1)
        back, crashed = back + 1, crashed + 1
      else
        call('LMOVE', unacked, q.ready, 'LEFT', 'RIGHT')
        back = back + 1
      end
    end
    return back, crashed, out
  end

  work, room = share, bytes
  need()
  check_types(q)
  if notify then
    check_notice(notify, notify:sub(-10) == '::outgoing' and name or '')
  end
  if dry then
    return 0, 0, (reject_exhausted(crashed))
  end
  -- LTRIM changes nothing; it is refused, if at all, before any message moves.
  call('LTRIM', unacked, 0, -1)
  local moved = give_back_newest(q, unacked, others)
  local back, changed, out, late, last = 0, 0, 0, 0, nil
  if moved == others and crashed > 0 then
    work = share
    out, last = reject_exhausted(crashed)
    if from >= last then
      back, changed, late = give_back_crashed(last)
    end
  end
  share, bytes = work, room
  return moved + back, changed, out + late
end

local ttl = call('PTTL', heartbeat)
-- A lease by receipt ends 500 ms before its key; see extend.lua.
if ttl > 0 and not killed
    and not (ttl < 500 and info and call('HEXISTS', info, 'lease') == 1) then
  return { -1, 0, 0, 0, 0, 0, 0 }
end
if call('EXISTS', other_consumers, other_unacked) > 0 then
  return { -2, 0, 0, 0, 0, 0, 0 }
end
local left = call('LLEN', unacked)
local crashed = math.min(left, count(slots, 2 ^ 31))
local back, changed, out, unlisted = 0, 0, 0, 0
local shared
if crashed > 0 then
  local set = redis.pcall('HMGET', settings, 'attempts', 'notify', 'slots-shared')
  limit = count(limit, RUNS)
  limit = limit > 0 and limit or count(set[1], RUNS)
  limit = limit > 0 and limit or tonumber(attempts)
  shared = set[3]
  listener = told or listener ~= '' and listener or set[2]
  if listener and not told then
    return listener
  end
  call('LLEN', rejected)
end
if dry then
  call('LLEN', ready)
  back = from == 0 and left or 0
  if crashed > 0 then
    out = select(3, move_any(0, crashed))
  end
  return { crashed - from, back - out, 0, out, 0, from, crashed > from and 1 or 0 }
end
-- While other steps are under way, a long list is left to a step that goes alone.
if left + 4 * crashed > share and share < 500 then
  return { left, 0, 0, 0, 0, from, 1 }
end
-- DEL needs no memory; see claim.lua.
call('DEL', consumers)
if info then
  call('HDEL', holders, connection)
end
if shared then
  redis.pcall('HDEL', taken, connection)
end
-- On a cluster, the cleaner lists the queue next, before it takes the queue from the
-- connection.
if known == 'rmq::queues' then
  call('SADD', known, name)
end
if crashed == 0 then
  back = give_back_plain(math.min(left, share))
end
if back < left and share > 0 and bytes > 0 then
  local more
  more, changed, out = move_any(left - crashed - back, crashed)
  back = back + more
end
left = left - back - out
if left == 0 then
  call('SREM', listed, name)
end
if left == 0 and call('SCARD', listed) == 0 then
  if info then
    call('DEL', info, running)
    redis.pcall('ZREM', 'rmq::holders', connection)
  end
  unlisted = call('SREM', connections, connection)
end
return { left, back, changed + out, out, unlisted, from,
  (left > 0 or share <= 0 or bytes <= 0) and 1 or 0 }
