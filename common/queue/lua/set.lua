-- Change settings of a queue in one step, even when memory is full: a limit may be
-- what makes room again.
--
--   KEYS  settings
--   ARGV  name, value ('': not set any more)...
--   reply how many settings there are
--
-- A crash before: nothing has changed.  After: all have.

local call, set, unset = redis.call, {}, {}

for i = 1, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    unset[#unset + 1] = ARGV[i]
  else
    set[#set + 1] = ARGV[i]
    set[#set + 1] = ARGV[i + 1]
  end
end
-- PERSIST takes no memory, and after one such write Redis lets the rest pass.
call('HLEN', KEYS[1])
call('PERSIST', KEYS[1])
-- A missing right is known before the first change, on any server: HDEL of a field that
-- no setting has is refused, or HSET.
if #unset > 0 then
  call('HDEL', KEYS[1], '')
end
if #set > 0 then
  call('HSET', KEYS[1], unpack(set))
end
if #unset > 0 then
  call('HDEL', KEYS[1], unpack(unset))
end
return call('HLEN', KEYS[1])
