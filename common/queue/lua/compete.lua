-- Compete for the rounds of cleaning of a server, or of a queue.
--
-- KEYS key=* [lease]
-- ARGV ms name [former]
--
--   lease   the heartbeat of the caller; on a cluster it is elsewhere
--   ms      until another one may have the key
--   name    of the caller
--   former  a name of the caller whose lease it has lost
--   reply   0: the key is the caller's, maybe as before; else in how many milliseconds it
--           is free
--
-- The key has the name of a heartbeat, and is free when that is gone.  On a cluster it
-- has the caller's name, and lasts, but not for the caller under another name.
--
-- A crash before: nothing.  After: others wait until the heartbeat or the key has
-- ended.

local call, own = redis.call, lease or name
local owner = call('GET', key)

if owner and owner ~= own
    and (not lease and owner ~= former
      or lease and call('EXISTS', owner) == 1) then
  return math.max(1, call('PTTL', key))
end
-- Needs no memory; see write_when_full.lua.
call('PERSIST', key)
call('SET', key, own, 'PX', ms)
return 0
