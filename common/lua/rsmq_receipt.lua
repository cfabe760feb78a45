-- Look for a message that a connection has been handed out by receipt.
--
--   KEYS  home (see lib/rsmq.lua), what the connection holds, its lease
--   ARGV  id, as rsmq_receipts.lua has it
--   reply the message as it was claimed, or nil.  A connection of another kind
--         has none
--
-- Changes nothing.

-- include rsmq

local q, held, id = home(1), KEYS[5], ARGV[1]

if call('HEXISTS', KEYS[6], 'receipts') == 0 then
  return false
end
if call('HEXISTS', held, id) == 0 then
  local ids, hash = call('HKEYS', held), id
  id = nil
  for i = 1, #ids do
    if redis.sha1hex(ids[i]):sub(1, 32) == hash then
      id = ids[i]
    end
  end
end
if not id or not holds(q, held, { id }) then
  return false
end
local m = read(q, { id })[1]
return m.body and element(id, m.body, m.runs - 1, m.extra)
