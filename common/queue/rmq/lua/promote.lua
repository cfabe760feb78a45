-- Make delayed messages claimable whose time or tick has come, the oldest due first.
--
-- KEYS q:PLACES
--
--   reply {how many, 1 if there may be more, else 0}
--
-- At most 250, or about 256 KiB of them, in one call: some 1 ms.
-- A crash before: none has moved.  After: those that moved are claimable only.

-- include leaving
-- include promote

-- A write that needs no memory, and refuses what is no sorted set; see
-- claim.lua.
call('ZREM', q.delayed, '')
call('LLEN', q.ready)
local moved, room = promote(q, 250, 262144)
return { moved, (moved == 250 or room <= 0) and 1 or 0 }
