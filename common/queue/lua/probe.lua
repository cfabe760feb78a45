-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Look whether keys have their types, or do not exist, and whether this user may run some
-- commands on them.
--
-- KEYS key...
-- ARGV commands...
--
--   commands  for each key, the command that reads the key and those that change it, with
--             blanks between; then for each key that is not read (on a cluster, of another
--             slot): the key, and its commands likewise
--   reply how many of KEYS exist; an error about a type names the key
--
-- Changes nothing, so a user who is refused here leaves nothing behind.

-- include rights

local function may_use(key, commands)
  for command in commands:gmatch('%S+') do
    need(key, command)
  end
end

local there = 0
for i, key in ipairs(KEYS) do
  may_use(key, ARGV[i])
  local reply = redis.pcall(ARGV[i]:match('%S+'), key)
  local why = type(reply) == 'table' and reply.err
  if why and why:find('WRONGTYPE', 1, true) then
    return redis.error_reply('WRONGTYPE the key ' .. key
      .. ' holds something else')
  elseif why then
    return reply
  elseif reply and reply ~= 0 then
    there = there + 1
  end
end
for i = #KEYS + 1, #ARGV, 2 do
  may_use(unpack(ARGV, i, i + 1))
end
return there
