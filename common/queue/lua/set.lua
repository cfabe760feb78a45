-- Change settings of a queue in one step, even when memory is full: a limit may be
-- what makes room again.
--
-- KEYS settings
-- ARGV (name value)...
--
--   value  '': not set any more
--   reply how many settings there are
--
-- A crash before: nothing has changed.  After: all have.

local call, set, unset = redis.call, {}, {}

for i = first_name, #ARGV, each_name do
  local name, value = unpack(ARGV, i, i + 1)
  if value == '' then
    unset[#unset + 1] = name
  else
    set[#set + 1] = name
    set[#set + 1] = value
  end
end
-- PERSIST takes no memory, and after one such write Redis lets the rest pass.
call('HLEN', settings)
call('PERSIST', settings)
-- A missing right is known before the first change, on any server: HDEL of a field that
-- no setting has is refused, or HSET.
if #unset > 0 then
  call('HDEL', settings, '')
end
if #set > 0 then
  call('HSET', settings, unpack(set))
end
if #unset > 0 then
  call('HDEL', settings, unpack(unset))
end
return call('HLEN', settings)
