-- Publish messages that fall due later.
--
--   KEYS  delayed
--   ARGV  'in' or 'at', milliseconds from now or unix milliseconds, member...
--   reply how many were added
--
-- A member is 32 bytes that make it unique, then the element.
-- A crash before: none is there.  After: all are.

local due = tonumber(ARGV[2])
if ARGV[1] == 'in' then
  local time = redis.call('TIME')
  due = due + time[1] * 1000 + math.floor(time[2] / 1000)
end
for i = 3, #ARGV do
  redis.call('ZADD', KEYS[1], due, ARGV[i])
end
return #ARGV - 2
