-- Make delayed messages claimable whose time or tick has come, the oldest due first.
--
-- KEYS q:PLACES
-- ARGV max
--
--   max    messages, and about 1 KiB for each; '0' to change nothing
--   reply  how many it has moved; with '0', how many are due
--
-- 250 keep the server for some 1 ms.
-- A crash before: none has moved.  After: those that moved are claimable only.

-- include leaving
-- include promote

if max == '0' then
  return call('ZCOUNT', q.delayed, '-inf', now)
    + call('ZCOUNT', q.delayed, AT_TICK, AT_TICK + clock(q))
end
-- A write that needs no memory, and refuses what is no sorted set; see
-- claim.lua.
call('ZREM', q.delayed, '')
call('LLEN', q.ready)
return (promote(q, tonumber(max), 1024 * max))
