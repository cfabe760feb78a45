-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Returns look()'s reply; if that fails, the keys of a wrong type, found by the commands in
-- uses, which are in the order of the keys.  Needs rights.

local function unless_wrong(look, keys, uses)
  local good, reply = pcall(look)
  if good then
    return reply
  end
  local wrong = {}
  for i, command in ipairs(uses) do
    local told = keys[i] and redis.pcall(command, keys[i])
    if type(told) == 'table' and told.err and told.err:find('WRONGTYPE', 1, true) then
      wrong[#wrong + 1] = keys[i]
    elseif keys[i] then
      need(keys[i], command)
    end
  end
  return wrong[1] and wrong or look()
end
