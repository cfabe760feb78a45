-- Compete for the rounds of cleaning of a server, or of a queue.
--
--   KEYS  the key, the heartbeat of the caller (on a cluster it is elsewhere)
--   ARGV  milliseconds until another one may have it, the caller's name, and one whose
--         lease it has lost
--   reply 0: it is the caller's, maybe as before; else in how many milliseconds it is
--         free
--
-- The key has the name of a heartbeat, and is free when that is gone.  On a cluster it
-- has the caller's name, and lasts, but not for the caller under another name.
--
-- A crash before: nothing.  After: others wait until the heartbeat or the key has
-- ended.

local call, key, own = redis.call, KEYS[1], KEYS[2] or ARGV[2]
local owner = call('GET', key)

if owner and owner ~= own
    and (not KEYS[2] and owner ~= ARGV[3]
      or KEYS[2] and call('EXISTS', owner) == 1) then
  return math.max(1, call('PTTL', key))
end
-- Needs no memory; see write_when_full.lua.
call('PERSIST', key)
call('SET', key, own, 'PX', ARGV[1])
return 0
