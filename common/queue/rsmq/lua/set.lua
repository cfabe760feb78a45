-- Change attributes of a queue.
--
--   KEYS  its hash
--   ARGV  for each its name and its new value
--   reply 1: they are changed; 0: there is no such queue
--
-- A crash before: nothing has changed.  After: all have.

-- include layout

local there = call('HMGET', KEYS[1], 'vt', 'delay', 'maxsize')
if not (there[1] and there[2] and there[3]) then
  return 0
end
call('HSET', KEYS[1], 'modified', time[1], unpack(ARGV))
return 1
