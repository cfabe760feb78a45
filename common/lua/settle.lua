-- Move one message out of an unacked list.
--
--   KEYS  unacked, target
--   ARGV  how, element, prefix, offset, milliseconds
--   how   'newest' or 'oldest': the end of a list that it joins;
--         'delayed': a sorted set, to fall due that much later
--         What joins is the prefix and the element from the offset on (0 is
--         its beginning), so that a large payload is sent only once.
--   reply 1, or 0 when the element is not there: the lease was lost
--
-- A crash before: it is still unacked.  After: it is in the target only.
-- The write that may be refused (wrong type) comes before the removal, so a
-- refusal changes nothing.

local element = ARGV[2]
if not redis.call('LPOS', KEYS[1], element, 'RANK', -1) then
  return 0
end
local moved = ARGV[3] .. element:sub(ARGV[4] + 1)
-- Changes nothing and needs no memory; see claim.lua.
redis.call('LTRIM', KEYS[1], 0, -1)
if ARGV[1] == 'delayed' then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('ZADD', KEYS[2], now + ARGV[5], moved)
elseif ARGV[1] == 'oldest' then
  redis.call('RPUSH', KEYS[2], moved)
else
  redis.call('LPUSH', KEYS[2], moved)
end
redis.call('LREM', KEYS[1], -1, element)
return 1
