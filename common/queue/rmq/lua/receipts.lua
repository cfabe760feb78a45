-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Number the messages that a connection hands out by receipt.
--
-- KEYS unacked info
-- ARGV count
--
--   count  how many messages there are
--   reply  count; 0 and nothing done: unacked has another number of messages
--
-- The info gets a field receipt:N with the identity of each message, from 1, the oldest
-- first.  The field goes when the message is settled, so that a receipt is good once, even
-- for one of several equal messages.
--
-- A crash before or after: no user knows the receipts, and when the lease is over,
-- a cleaner returns the messages.

-- include identity

if call('LLEN', unacked) ~= tonumber(count) then
  return 0
end
-- LTRIM changes nothing and needs no memory; see claim.lua.
call('LTRIM', unacked, 0, -1)
local all = call('LRANGE', unacked, 0, -1)
for i = 1, #all do
  call('HSET', info, 'receipt:' .. #all - i + 1, identity(all[i]))
end
return #all
