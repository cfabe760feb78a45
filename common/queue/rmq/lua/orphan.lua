-- Remove a key of ours whose queue or connection nobody knows.
--
--   KEYS  the key, the set that would know its owner, the owner's heartbeat or ready list
--   ARGV  owner; 'queue', 'connection', or 'held' (by messages of a queue, and so it stays
--         while any are ready); '1' to only say what would be
--   reply 1 if the key was removed, else 0
--
-- A crash before: nothing.  After: all of it has happened.

local key, known, sign = unpack(KEYS)

if redis.call('SISMEMBER', known, ARGV[1]) == 1
    or ARGV[2] ~= 'queue' and redis.call('EXISTS', sign) == 1 then
  return 0
end
return redis.call(ARGV[3] == '1' and 'EXISTS' or 'DEL', key)
