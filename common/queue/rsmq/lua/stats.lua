-- The counts of a queue.
--
--   KEYS  the queue's (see lib/layout.lua), the messages that it has rejected, paused
--   ARGV  how many hidden ones to look at
--   reply {vt, delay, maxsize, totalsent, totalrecv, created, modified; how
--         many can be received; how many wait; how many are in somebody's
--         hands; how many were rejected; how long it is paused, as PTTL has it;
--         since when the oldest can be received, in unix milliseconds, '' if
--         that is not known; the score of the first that waits, or ''; how many
--         hidden ones follow, and score and id of the last before them}
--
-- Changes nothing.

-- include layout
-- include walk

local q, rejected, paused = queue_keys(1)

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

local ready = visible(q)
local waits, held, first, left, score, id =
  count_hidden(q, ready, tonumber(ARGV[1]), {})
local reply = call('HMGET', q.h, 'vt', 'delay', 'maxsize', 'totalsent',
  'totalrecv', 'created', 'modified')
for _, value in ipairs({ ready, waits, held, call('ZCARD', rejected),
  call('PTTL', paused), ready > 0 and oldest() or '', first, left, score,
  id }) do
  reply[#reply + 1] = value
end
return reply
