-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- The holders of a queue: a hash with a field for each connection of these tools that
-- consumes the queue; the value is the name again.
--
-- `all` is the sorted set that has every connection listed anywhere.  The functions need `call`.

-- Removes the fields of connections that `all` does not know: these are dead.  `holders` may
-- also be the hash of lib/shared.lua.
local function forget_dead(holders, all)
  for _, name in ipairs(redis.pcall('HKEYS', holders)) do
    if name ~= 'limit' and not call('ZSCORE', all, name) then
      call('HDEL', holders, name)
    end
  end
end

-- Lists a connection that `all` has.  Cleaners that do not know holders leave fields there.
local function list_holder(holders, connection, all)
  call('HSET', holders, connection, connection)
  if call('HLEN', holders) > 2 * call('ZCARD', all) then
    forget_dead(holders, all)
  end
end

-- The names in all holders whose keys are the last ones, from `first` on.
local function names_in(first)
  local names = {}
  for i = first, #KEYS do
    for _, value in ipairs(call('HVALS', KEYS[i])) do
      names[#names + 1] = value
    end
  end
  return names
end
