-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Numbers, counts and ages of the messages of queues.
--
-- KEYS | (ready rejected counters priority delayed clock paused slots)...
-- ARGV field...
-- REPLY ready_n priority_n rejected_n delayed_n line_n outgoing_n taken_n slots_n pause_ms
--      now_ms tick header since_ms due_ms value...
--
--   paused     on a cluster, outgoing is one key more, behind those of a single queue
--   field      of the counters
--   *_n        messages in ready, priority, rejected, delayed (line_n: in line), outgoing
--   taken_n    of slots_n slots that consumers share; both -1 if there is no limit
--   pause_ms   the pause as PTTL has it
--   now_ms     on a cluster the node's clock in unix milliseconds, else 0
--   header     of the oldest ready message, from the signature to the newline, if at most
--              64 KiB
--   since_ms   since when the oldest message of priority has been there, unix milliseconds,
--              or ''
--   due_ms     when the next delayed message is due, unix milliseconds, or ''
--   value      missing if nothing was counted
--   reply      of each queue; or its keys of a wrong type; or 0, on a cluster, if none of the
--              keys exists
--
-- For since_ms, the first message of each score is looked at (see lib/place.lua), the lowest
-- priority first, as that waits longest; at most 200 scores.  Changes nothing.

-- include rights
-- include wrong

local call = redis.call

-- include shared

local outgoing = #KEYS % each_ready == 1 and KEYS[#KEYS]

local function header(ready)
  local element = call('LINDEX', ready, -1)
  local stop = element:sub(1, 5) == '\255\0\190\190J'
    and element:sub(1, 65536):find('\n', 6, true)
  return stop and element:sub(1, stop) or ''
end

-- When a member came, in microseconds, by its prefix: see in_order(), in_front() and in_tick()
-- of lib/leaving.lua; an id begins with the microseconds of its publishing.
local function came_us(member)
  local kind, us = member:sub(1, 1), tonumber(member:sub(2, 17))
  if kind == 'n' then
    return us
  elseif kind == 'f' then
    return us and 1e16 - us
  elseif member:sub(8, 8) == 'n' then
    return tonumber(member:sub(9, 24))
  end
  return tonumber(member:sub(8, 17), 36)
end

local function since(priority)
  local us, high = 1e16, '+inf'
  for _ = 1, 200 do
    local score = call('ZREVRANGEBYSCORE', priority, high, '-inf', 'WITHSCORES',
      'LIMIT', 0, 1)[2]
    if not score then
      break
    end
    local first = call('ZRANGEBYSCORE', priority, score, score, 'LIMIT', 0, 1)[1]
    us, high = math.min(us, came_us(first) or 1e16), '(' .. score
  end
  return us < 1e16 and string.format('%.0f', us / 1000) or ''
end

local function facts(ready, rejected, counters, priority, delayed, clock, paused, slots)
  -- Without outgoing, on one server, the caller knows that keys exist.
  if outgoing and call('EXISTS', unpack(KEYS)) == 0 then
    return 0
  end
  local reply = { call('LLEN', ready), 0, call('LLEN', rejected), 0, 0, 0, -1, -1, -2, 0, '', '',
    '', '' }
  if reply[READY_N] > 0 then
    reply[HEADER] = header(ready)
  end
  if outgoing then
    local time = call('TIME')
    reply[NOW_MS] = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  -- Most queues have none of these keys, or only counters.
  local n = call('EXISTS', counters, priority, delayed, clock, paused, slots,
    outgoing or paused)
  local values = n > 0 and call('HMGET', counters, unpack(ARGV)) or {}
  for i = 1, #values do
    n = n == 1 and values[i] and 0 or n
    reply[DUE_MS + i] = values[i]
  end
  if n == 0 then
    return reply
  end
  reply[TAKEN_N], reply[SLOTS_N] = count_slots(slots)
  reply[OUTGOING_N] = outgoing and call('HLEN', outgoing) or 0
  reply[PRIORITY_N], reply[DELAYED_N] = call('ZCARD', priority), call('ZCARD', delayed)
  reply[PAUSE_MS], reply[TICK] = call('PTTL', paused), call('GET', clock) or ''
  if reply[PRIORITY_N] > 0 then
    reply[SINCE_MS] = since(priority)
  end
  if reply[DELAYED_N] > 0 then
    -- Scores of delayed are explained in mq-layout(7).
    local first = call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
    reply[LINE_N] = call('ZCOUNT', delayed, 2 ^ 52, '+inf')
    reply[DUE_MS] = tonumber(first) < 2 ^ 50 and first or ''
  end
  return reply
end

local replies, uses = {}, { 'LLEN', 'LLEN', 'HLEN', 'ZCARD', 'ZCARD', 'GET', 'TTL', 'HLEN',
  'HLEN' }
for i = first_ready, #KEYS - (outgoing and 1 or 0), each_ready do
  local keys = { unpack(KEYS, i, i + each_ready - 1) }
  keys[#keys + 1] = outgoing or nil
  replies[#replies + 1] = unless_wrong(function()
    return facts(unpack(keys))
  end, keys, uses)
end
return replies
