-- Compete for the rounds of cleaning of a server, or of a queue.
--
--   KEYS  the key, the heartbeat of the caller (on a cluster it is elsewhere)
--   ARGV  milliseconds until another one may have it, the name of the caller, and one
--         whose lease it has lost
--   reply 0: it is the caller's, whose it may have been before; else in how many
--         milliseconds it will be free
--
-- The key says whose it is by the name of a heartbeat: if that is gone, it is
-- free.  On a cluster it says the caller's name, and lasts, but not for the caller under
-- another name.
--
-- A crash before: nothing has happened.  After: others wait, but at most as long
-- as the heartbeat and the key last.

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
