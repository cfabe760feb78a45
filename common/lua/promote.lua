-- Make delayed messages claimable whose time or tick has come, the oldest due
-- first.
--
--   KEYS  home (see lib/place.lua)
--   reply {how many, 1 if there may be more, else 0}
--
-- At most 1000, or about 1 MiB of them, in one call.
-- A crash before: none has moved.  After: those that moved are claimable only.

-- include place

local q = home(1)
-- A write that needs no memory, and refuses what is no sorted set; see
-- claim.lua.
call('ZREM', q.delayed, '')
call('LLEN', q.ready)
local moved, room = promote(q, 1000, 1048576)
return { moved, (moved == 1000 or room <= 0) and 1 or 0 }
