-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Look for a message that a connection has handed out by receipt.
--
-- KEYS unacked info lease
-- ARGV receipt
--
--   receipt  its number
--   reply    the message, or nil when it is settled or the lease is over
--
-- Changes nothing.

-- include identity

local which = call('HGET', info, 'receipt:' .. receipt)
-- For 500 ms, see extend.lua.
if not which or call('PTTL', lease) < 500 then
  return false
end
local all = call('LRANGE', unacked, 0, -1)
for i = 1, #all do
  if identity(all[i]) == which then
    return all[i]
  end
end
return false
