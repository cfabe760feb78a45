-- When the next delayed message of each queue is due, without the message.
--
--   KEYS  delayed...
--   reply for each: unix milliseconds as text, or nil when none is delayed
--
-- Changes nothing.

local reply = {}
for i, key in ipairs(KEYS) do
  reply[i] = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or false
end
return reply
