-- Move one message out of an unacked list.
--
--   KEYS  unacked, target
--   ARGV  how, element, new element ('' = unchanged), [milliseconds]
--   how   'newest' or 'oldest': the end of a list that it joins;
--         'delayed': a sorted set, to fall due that much later
--   reply 1, or 0 when the element is not there: the lease was lost
--
-- A crash before: it is still unacked.  After: it is in the target only.
-- The write that may be refused (wrong type) comes before the removal, so a
-- refusal changes nothing.

local element, moved = ARGV[2], ARGV[3]
if not redis.call('LPOS', KEYS[1], element, 'RANK', -1) then
  return 0
end
if moved == '' then
  moved = element
end
-- Changes nothing and needs no memory; see claim.lua.
redis.call('LTRIM', KEYS[1], 0, -1)
if ARGV[1] == 'delayed' then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  redis.call('ZADD', KEYS[2], now + ARGV[4], moved)
elseif ARGV[1] == 'oldest' then
  redis.call('RPUSH', KEYS[2], moved)
else
  redis.call('LPUSH', KEYS[2], moved)
end
redis.call('LREM', KEYS[1], -1, element)
return 1
