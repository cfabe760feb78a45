-- Look whether queues need a claim by a consumer that is idle there; see
-- lib/role.lua.  Changes nothing.
--
--   KEYS  of each queue: ready, priority, delayed, clock, paused, watch, idle
--   ARGV  name in the consumer's channel
--   reply of each queue: 0, a claim is needed: the one on watch is gone, or
--         leaves messages where they are, or nobody would wake this consumer; else
--         how many are idle there
--
-- A crash before or after changes nothing.

local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local AT_TICK, FRESH_MS = 2 ^ 50, 45000
local reply = {}

local function has_due(delayed, clock)
  local tick = tonumber(call('GET', clock)) or 0
  return call('ZRANGEBYSCORE', delayed, '-inf', now, 'LIMIT', 0, 1)[1]
    or tick > 0 and call('ZRANGEBYSCORE', delayed, AT_TICK, AT_TICK + tick,
      'LIMIT', 0, 1)[1]
end

for i = 1, #KEYS, 7 do
  local since = call('ZSCORE', KEYS[i + 6], ARGV[1])
  local waits = call('EXISTS', KEYS[i], KEYS[i + 1]) > 0
    or call('EXISTS', KEYS[i + 2]) == 1 and has_due(KEYS[i + 2], KEYS[i + 3])
  if not since or now - since > FRESH_MS or call('EXISTS', KEYS[i + 5]) == 0
      or waits and call('EXISTS', KEYS[i + 4]) == 0 then
    reply[#reply + 1] = 0
  else
    reply[#reply + 1] = call('ZCARD', KEYS[i + 6])
  end
end
return reply
