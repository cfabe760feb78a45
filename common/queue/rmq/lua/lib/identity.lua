-- The identity of a message among the others of a claim.

local call = redis.call

-- A claim ends once it has a megabyte, so at most one of its messages is as long.
local function identity(element)
  return #element >= 1048576 and 'large' or redis.sha1hex(element)
end
