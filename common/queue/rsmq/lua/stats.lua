-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- The counts of a queue, or of its hidden messages.
--
-- KEYS q:PLACES key...
-- ARGV looks score id field...
--
--   key        z of the rejected messages, paused, counters and slots; without fields, messages
--              that connections hold, which are not counted
--   looks      how many hidden messages to look at
--   score, id  of the walk's last message ('' at its beginning)
--   field      of the counters; none: only hidden messages are counted
--   reply {messages that wait; unacked messages; the score of the first that waits, or '';
--         hidden messages that follow; score and id of the walk's last message, or '';
--         messages that can be received; and with fields, vt, delay, maxsize, totalsent,
--         totalrecv, created, modified; rejected messages; the pause as PTTL has it; slots
--         that are taken, and all that consumers share, or -1, -1; since when the oldest
--         message can be received, in unix milliseconds, '' if that is unknown; value...}, or
--         the keys of a wrong type
--
-- Changes nothing.

-- include layout
-- include shared
-- include walk
-- include wrong

local all = #ARGV >= first_field
local rejected, paused, counters, slots = unpack(KEYS, first_key)

-- Since when the oldest message can be received, in unix milliseconds, or ''.  The score of a
-- message with a priority is lower by that, so its age is taken from its id.
local function oldest()
  local low, since = '-inf', nil
  repeat
    local first = call('ZRANGEBYSCORE', q.z, low, int(now), 'WITHSCORES',
      'LIMIT', 0, 1)
    local score = tonumber(first[2])
    local class = score and math.floor((now - score) / PRIORITY + 0.5)
    local at = class == 0 and score or class and sent(first[1])
    since = at and math.min(since or at, at) or since
    low = class and int(now - (class - 0.5) * PRIORITY)
  until not class or class == 0 or class > 100
  return since and int(since) or ''
end

local function look()
  local ready = visible(q)
  local at = math.max(past(q.z, score, id), ready)
  local spared = all and {} or held_from(q, first_key)
  local waits, held, first, left = 0, 0, '', 0

  score, id, left = go_on(q, at, tonumber(looks), function(ids, scores)
    local list = taken(q, ids)
    for i = 1, #ids do
      if list[i] then
        held = held + (spared[ids[i]] and 0 or 1)
      else
        waits, first = waits + 1, first == '' and scores[i] or first
      end
    end
  end)
  local reply = { waits, held, first, left, score, id, ready }
  if not all then
    return reply
  end
  for _, value in ipairs(call('HMGET', q.h, 'vt', 'delay', 'maxsize', 'totalsent',
      'totalrecv', 'created', 'modified')) do
    reply[#reply + 1] = value
  end
  local taken_n, slots_n = count_slots(slots)
  for _, value in ipairs({ call('ZCARD', rejected), call('PTTL', paused), taken_n, slots_n,
      ready > 0 and oldest() or '', unpack(call('HMGET', counters, unpack(ARGV, first_field))) }) do
    reply[#reply + 1] = value
  end
  return reply
end

return all and unless_wrong(look, KEYS,
  { 'ZCARD', 'HLEN', 'HLEN', 'HLEN', 'ZCARD', 'TTL', 'HLEN', 'HLEN' }) or look()
