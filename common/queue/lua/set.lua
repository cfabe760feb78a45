-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Change settings of a queue in one step, even when memory is full: a limit may be
-- what makes room again.
--
-- KEYS settings [locks=*]
-- ARGV (name value)...
--
--   locks  of the queue, if group-slots changes: the field s has its value, and the highest
--          one ever (see rmq/lua/lib/leaving.lua)
--   value  '': the setting is removed
--   reply  number of settings
--
-- A crash before: nothing has changed.  After: everything.

local call, set, unset = redis.call, {}, {}
local slots, most

for i = first_name, #ARGV, each_name do
  local name, value = unpack(ARGV, i, i + 1)
  if value == '' then
    unset[#unset + 1] = name
  else
    set[#set + 1] = name
    set[#set + 1] = value
  end
  slots = name == 'group-slots' and (tonumber(value) or 1) or slots
end
if locks then
  most = tonumber((call('HMGET', locks, 's')[1] or ''):match('%d+$')) or 1
  -- HDEL changes nothing: without the right, the script ends here.
  call('HDEL', locks, '')
end
-- PERSIST needs no memory; see write_when_full.lua.
call('HLEN', settings)
call('PERSIST', settings)
-- HDEL of a missing field: without the right, the script ends before the first change.
if #unset > 0 then
  call('HDEL', settings, '')
end
if locks and math.max(slots, most) > 1 then
  call('HSET', locks, 's', string.format('%.0f %.0f', slots, math.max(slots, most)))
end
if #set > 0 then
  call('HSET', settings, unpack(set))
end
if #unset > 0 then
  call('HDEL', settings, unpack(unset))
end
return call('HLEN', settings)
