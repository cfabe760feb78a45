-- The connections that consume some queues, if all connections list themselves there.
--
-- KEYS connections holders...
--
--   reply  names; nil: there are older connections, which are asked about one by one
--
-- Changes nothing.

local call = redis.call

if call('ZCOUNT', connections, '-inf', '(1') > 0 then
  return false
end
local names = {}
for i = first_holders, #KEYS do
  for _, value in ipairs(call('HVALS', KEYS[i])) do
    names[#names + 1] = value:match('^%d+ %d+ (.*)$')
  end
end
return names
