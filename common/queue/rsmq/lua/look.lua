-- Look whether queues need a claim by a consumer that is idle there; see rmq's
-- look.lua.
--
--   KEYS  of each queue: its messages, paused, watch, idle
--   ARGV  name in the consumer's channel, '1' to check that others know it
--   reply of each queue: 0, a claim is needed; else how many are idle there,
--         or -1 unless that was checked
--
-- A crash before or after changes nothing.

-- include alive

local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local FRESH_MS = 200000
local reply = {}

local function is_stale(watch, since)
  return not since or now - since > FRESH_MS
    or not is_alive(call('GET', watch))
end

for i = 1, #KEYS, 4 do
  local z, paused, watch, idle = unpack(KEYS, i, i + 3)
  local since = ARGV[2] == '1' and call('ZSCORE', idle, ARGV[1])
  if call('EXISTS', watch) == 0
      or call('ZCOUNT', z, '-inf', now) > 0
        and call('EXISTS', paused) == 0
      or ARGV[2] == '1' and is_stale(watch, since) then
    reply[#reply + 1] = 0
  else
    reply[#reply + 1] = since and call('ZCARD', idle) or -1
  end
end
return reply
