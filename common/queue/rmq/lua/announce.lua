-- Settle a message as settle.lua does, and in the same step use its receipt up, keep its
-- result, and tell another queue of it.
--
-- KEYS q:PLACES unacked known lease info notify=* notified=* | [to:PLACES]
-- ARGV how element header offset ms unique receipt id result keep_ms field notice
--
--   notify, notified  for a notice, see lib/notices.lua
--   receipt           its number; '': none was given
--   id                of the message whose result is kept for keep_ms; '': it has none
--   field             of the notice in outgoing, or ''
--   notice            one more message; '': none
--   reply             as settle.lua; also 0 when the lease of the receipt is over, or it
--                     was used
--
-- A crash before: it is still unacked, and nobody has heard of its end.  After: all of it
-- has happened.

-- include settling
-- include results
-- include notices

if not may_settle() then
  return 0
end
receipt = receipt ~= '' and 'receipt:' .. receipt
-- See extend.lua.
if receipt and (call('PTTL', lease) < 500
    or call('HEXISTS', info, receipt) == 0) then
  return 0
end
if receipt then
  need(info, 'HDEL')
end
if id ~= '' then
  need_tell(q)
end
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
end
if notice ~= '' then
  send_notice(notify, notified, known, field, notice)
end
return 1
