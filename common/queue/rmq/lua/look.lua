-- Look whether queues need a claim by a consumer that is idle there; see
-- lib/role.lua.  Changes nothing.
--
--   KEYS  of each queue: ready, priority, delayed, clock, paused, watch, idle
--   ARGV  name in the consumer's channel, '1' to check that others know it
--   reply of each queue: 0, a claim is needed: the one on watch is gone, or
--         leaves messages where they are, or (checked) is dead, or nobody would
--         wake this consumer; else how many are idle there, or -1 unless checked
--
-- A crash before or after changes nothing.

-- include alive

local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local AT_TICK, FRESH_MS = 2 ^ 50, 200000
local reply = {}

local function has_due(delayed, clock)
  local tick = tonumber(call('GET', clock)) or 0
  return call('ZRANGEBYSCORE', delayed, '-inf', now, 'LIMIT', 0, 1)[1]
    or tick > 0 and call('ZRANGEBYSCORE', delayed, AT_TICK, AT_TICK + tick,
      'LIMIT', 0, 1)[1]
end

local function is_stale(watch, since)
  return not since or now - since > FRESH_MS
    or not is_alive(call('GET', watch))
end

for i = 1, #KEYS, 7 do
  local ready, priority, delayed, clock, paused, watch, idle =
    unpack(KEYS, i, i + 6)
  local found = call('EXISTS', watch, ready, ready, priority, priority, delayed,
    delayed)
  local waits = found > 1 and (call('EXISTS', ready, priority) > 0
    or has_due(delayed, clock)) and call('EXISTS', paused) == 0
  local since = ARGV[2] == '1' and call('ZSCORE', idle, ARGV[1])
  if found % 2 == 0 or waits
      or ARGV[2] == '1' and is_stale(watch, since) then
    reply[#reply + 1] = 0
  else
    reply[#reply + 1] = since and call('ZCARD', idle) or -1
  end
end
return reply
