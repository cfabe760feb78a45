-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- The header line of a message, if that has one of the headers below, else nil.
local function asking(element)
  if element:sub(1, 5) ~= '\255\0\190\190J' then
    return nil
  end
  local head = element:sub(6, element:find('\n', 6, true) or 0)
  return head:find('"Mq%-@OBEYED@') and head
end
