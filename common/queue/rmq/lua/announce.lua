-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Settle a message as settle.lua does, and in the same step use up its receipt, keep its
-- result, and send a notice to another queue.
--
-- KEYS q:PLACES unacked known lease info notify=* notified=* | [to:PLACES]
-- ARGV how element header offset ms unique receipt id result keep_ms field notice [listed]
-- NEEDS DEL RPUSH PEXPIRE HGET HMGET HSET HDEL ZRANGEBYSCORE GET ZADD LPUSH ZREM
--
--   notify, notified  for a notice, see lib/notices.lua
--   receipt           number of the receipt; '': none
--   id                whose result is kept for keep_ms; '': none is kept
--   field             of the notice in outgoing, or ''
--   notice            the notice, a message; '': none
--   listed            there: the end is listed, too
--   reply             as settle.lua; also 0 if the receipt was used, or its lease is over
--
-- A crash before: the message is unacked.  After: everything has happened.

-- include settling
-- include results
-- include notices

if not may_settle() then
  return 0
end
receipt = receipt ~= '' and 'receipt:' .. receipt
-- For 500 ms, see extend.lua.
if receipt and (call('PTTL', lease) < 500
    or call('HEXISTS', info, receipt) == 0) then
  return 0
end
need()
if notice ~= '' then
  check_notice(notify, field)
end
if settle() == 0 then
  return 0
end
if receipt then
  call('HDEL', info, receipt)
end
if id ~= '' then
  keep_result(q, id, result, keep_ms)
  if listed then
    list_end(q, id, result, keep_ms)
  end
end
if notice ~= '' then
  send_notice(notify, notified, known, field, notice)
end
return 1
