-- Remove a key of ours whose queue or connection nobody knows.
--
--   KEYS  the key, the set that would know its owner, the owner's heartbeat or ready list
--   ARGV  owner; 'queue', 'connection', 'messages' (a queue's list or sorted set, or an
--         unacked list), or 'held' (by messages, and so it stays while any are ready);
--         '1' to only say what would be
--   reply 1 if the key was removed; 2 if it holds messages: then its queue is made known
--         instead; else 0
--
-- A crash before: nothing.  After: all of it has happened.

local key, known, sign = unpack(KEYS)

if redis.call('SISMEMBER', known, ARGV[1]) == 1
    or (ARGV[2] == 'connection' or ARGV[2] == 'held')
      and redis.call('EXISTS', sign) == 1 then
  return 0
end
if ARGV[2] == 'messages' then
  local kind = redis.call('TYPE', key).ok
  if kind ~= 'zset' and kind ~= 'list' then
    return 0
  end
  if ARGV[3] ~= '1' then
    -- Changes nothing and needs no memory; see claim.lua.
    if kind == 'zset' then
      redis.call('ZREM', key, '')
    else
      redis.call('LTRIM', key, 0, -1)
    end
    redis.call('SADD', known, ARGV[1])
  end
  return 2
end
if ARGV[3] == '1' then
  return redis.call('EXISTS', key)
end
return redis.call('DEL', key)
