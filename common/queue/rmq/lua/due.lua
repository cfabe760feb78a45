-- When the delayed messages of each queue are due, without the messages.
--
--   KEYS  delayed...
--   reply for each: when the next one is due, unix milliseconds as text, or nil
--         when none waits for a time; and how many are in line for their group
--
-- Changes nothing.

local reply = {}
for i, key in ipairs(KEYS) do
  -- See mq-layout(7).
  local head = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2]
  reply[2 * i - 1] = head and tonumber(head) < 2 ^ 50 and head or false
  reply[2 * i] = redis.call('ZCOUNT', key, 2 ^ 52, '+inf')
end
return reply
