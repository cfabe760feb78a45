-- Look whether queues need a claim by a consumer that is idle there; see rmq's
-- look.lua.
--
--   KEYS  of each queue: its messages, paused, watch, idle
--   ARGV  name in the consumer's channel
--   reply of each queue: 0, a claim is needed; else how many are idle there
--
-- A crash before or after changes nothing.

local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local FRESH_MS = 45000
local reply = {}

for i = 1, #KEYS, 4 do
  local since = call('ZSCORE', KEYS[i + 3], ARGV[1])
  if not since or now - since > FRESH_MS or call('EXISTS', KEYS[i + 2]) == 0
      or call('ZRANGEBYSCORE', KEYS[i], '-inf', now, 'LIMIT', 0, 1)[1]
        and call('EXISTS', KEYS[i + 1]) == 0 then
    reply[#reply + 1] = 0
  else
    reply[#reply + 1] = call('ZCARD', KEYS[i + 3])
  end
end
return reply
