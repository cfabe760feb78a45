-- Ack the oldest messages of an unacked list when some may be equal to others.
--
--   KEYS  unacked
--   ARGV  the elements, the oldest first
--   reply how many, or 0 and nothing done when the list does not have all of
--         them
--
-- A crash before: all are unacked.  After: all are gone, each as often as it
-- was named, and nothing else is.

local call, unacked, n = redis.call, KEYS[1], #ARGV

-- Whether they are the oldest, in this order.
local function are_oldest()
  local tail = call('LRANGE', unacked, -n, -1)
  for i = 1, n do
    if tail[n + 1 - i] ~= ARGV[i] then
      return false
    end
  end
  return true
end

if are_oldest() then
  call('LTRIM', unacked, 0, -n - 1)
  return n
end
-- LREM takes the oldest of equal elements, whichever of them was meant, so the
-- order here may be another one.
local times = {}
for i = 1, n do
  times[ARGV[i]] = (times[ARGV[i]] or 0) + 1
end
for element, k in pairs(times) do
  if #call('LPOS', unacked, element, 'RANK', -1, 'COUNT', k) < k then
    return 0
  end
end
for element, k in pairs(times) do
  call('LREM', unacked, -k, element)
end
return n
