-- Change attributes of a queue.
--
-- KEYS hash=:Q
-- ARGV (name value)...
--
--   reply 1: they are changed; 0: there is no such queue
--
-- A crash before: nothing has changed.  After: all have.

-- include layout

local there = call('HMGET', hash, 'vt', 'delay', 'maxsize')
if not (there[1] and there[2] and there[3]) then
  return 0
end
call('HSET', hash, 'modified', time[1], unpack(ARGV))
return 1
