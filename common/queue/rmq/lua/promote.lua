-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Make delayed messages claimable whose time or tick has come, the oldest due first.
--
-- KEYS q:PLACES
-- ARGV max
--
--   max    messages, of about 1 KiB each; '0': change nothing
--   reply  number of messages promoted; with '0', number of due messages
--
-- 250 messages take the server some 1 ms.
-- A crash before: no message has moved.  After: those that moved are claimable only.

-- include leaving
-- include promote

if max == '0' then
  return call('ZCOUNT', q.delayed, '-inf', now)
    + call('ZCOUNT', q.delayed, AT_TICK, AT_TICK + clock(q))
end
return (promote(q, tonumber(max), 1024 * max))
