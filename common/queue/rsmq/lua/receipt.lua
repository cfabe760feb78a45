-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Look for a message that was handed out by receipt, or adopted.
--
-- KEYS q:PLACES held lease
-- ARGV named [by_id]
--
--   named  number of a receipt; or, with by_id, an id, as stored or as shown
--   reply  the message as it was claimed, or nil.  By an id, only adopted messages are found;
--          0: the connection hands messages out by receipt
--
-- Changes nothing.

-- include layout

local id = named

if by_id and call('HEXISTS', held, id) == 0 then
  local ids = call('HKEYS', held)
  id = nil
  for i = 1, #ids do
    id = shown_as(ids[i]) == named and ids[i] or id
  end
elseif not by_id then
  id = call('HGET', lease, 'receipt:' .. id)
end
if not id or call('HEXISTS', lease, 'receipts') == 0
    or not holds(q, held, { id }) then
  return false
end
if by_id and call('HEXISTS', lease, 'receipt:1') == 1 then
  return 0
end
local m = read(q, { id })[1]
return m.body and element(id, m.body, m.runs - 1, m.extra)
