-- What look() returns; if that fails, the keys of another type than theirs: uses says in the
-- order of KEYS by which command each is looked at.  Needs rights.

local function unless_wrong(look, uses)
  local good, reply = pcall(look)
  if good then
    return reply
  end
  local wrong = {}
  for i, command in ipairs(uses) do
    local told = KEYS[i] and redis.pcall(command, KEYS[i])
    if type(told) == 'table' and told.err and told.err:find('WRONGTYPE', 1, true) then
      wrong[#wrong + 1] = KEYS[i]
    elseif KEYS[i] then
      need(KEYS[i], command)
    end
  end
  return wrong[1] and wrong or look()
end
