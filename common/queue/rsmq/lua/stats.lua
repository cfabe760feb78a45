-- The counts of a queue, or of its hidden messages.
--
-- KEYS q:PLACES key...
-- ARGV looks score id field...
--
--   key        the messages that the queue has rejected, paused and counters; or, of hidden
--              ones, what connections hold whose messages are not counted
--   looks      how many hidden messages to look at
--   score, id  of the message that the walk came to last ('' at its beginning)
--   field      of the counters; none: only hidden ones are counted
--   reply {how many wait; how many are in somebody's hands; the score of the first that
--         waits, or ''; how many hidden ones follow; score and id of the last, or ''; how
--         many can be received; and unless only hidden ones are counted, vt, delay,
--         maxsize, totalsent, totalrecv, created, modified; how many were rejected; how
--         long it is paused, as PTTL has it; since when the oldest can be received, in
--         unix milliseconds, '' if that is not known; value...}, or the keys that hold
--         another type
--
-- Changes nothing.

-- include layout
-- include walk
-- include wrong

local all = #ARGV >= first_field
local rejected, paused, counters = unpack(KEYS, first_key)

-- Of those that can be received.  A priority is taken from the score, so these
-- come first; of the first of each, only the id tells.
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
  for _, value in ipairs({ call('ZCARD', rejected), call('PTTL', paused),
      ready > 0 and oldest() or '', unpack(call('HMGET', counters, unpack(ARGV, first_field))) }) do
    reply[#reply + 1] = value
  end
  return reply
end

return all and unless_wrong(look,
  { 'ZCARD', 'HLEN', 'HLEN', 'HLEN', 'ZCARD', 'TTL', 'HLEN' }) or look()
