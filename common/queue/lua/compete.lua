-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Compete for the rounds of cleaning of a server, or of a queue.
--
-- KEYS key=* [lease]
-- ARGV ms name [former]
--
--   lease   the heartbeat of the caller; not on a cluster, where it is in another slot
--   ms      until another caller may have the key
--   name    of the caller
--   former  a name of the caller, of a lease that was lost
--   reply   0: the key is the caller's, maybe as before; else in how many milliseconds the
--           key is free
--
-- The key has the name of a heartbeat, and is free when that is gone.  On a cluster the key
-- has the caller's name, and is free when it expires, or if that is the former name.
--
-- A crash before: nothing has happened.  After: others wait until the heartbeat or the key
-- has ended.

local call, own = redis.call, lease or name
local owner = call('GET', key)

if owner and owner ~= own
    and (not lease and owner ~= former
      or lease and call('EXISTS', owner) == 1) then
  return math.max(1, call('PTTL', key))
end
-- PERSIST needs no memory; see write_when_full.lua.
call('PERSIST', key)
call('SET', key, own, 'PX', ms)
return 0
