-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Number the messages that a connection hands out by receipt.
--
-- KEYS held lease
-- ARGV id...
--
--   reply number of messages; 0 and nothing done: the lease is over, or the connection does
--         not hold all messages any more
--
-- The lease gets a field receipt:N with the id of each message, from 1.
--
-- A crash before or after: no user knows the receipts, and the lease ends.

if redis.call('EXISTS', lease) == 0 then
  return 0
end
for i = 1, #ARGV do
  if redis.call('HEXISTS', held, ARGV[i]) == 0 then
    return 0
  end
end
for i = 1, #ARGV do
  redis.call('HSET', lease, 'receipt:' .. i, ARGV[i])
end
return #ARGV
