-- The header line of a message, if that has one of the headers below, else nil.
local function asking(element)
  if element:sub(1, 5) ~= '\255\0\190\190J' then
    return nil
  end
  local head = element:sub(6, element:find('\n', 6, true) or 0)
  -- Expires, From, Group, Key, Until, Unique, Priority, Reply; but not Error and Param.
  return head:find('"Mq%-[EFGKUPR][xrne][oytip]') and head
end
