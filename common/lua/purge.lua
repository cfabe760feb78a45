-- Remove all messages at one place.
--
--   KEYS  a list or a sorted set
--   reply how many there were
--
-- A crash before: all are there.  After: none is.  Their memory is freed in
-- the background.

local kind = redis.call('TYPE', KEYS[1]).ok
local n = redis.call(kind == 'zset' and 'ZCARD' or 'LLEN', KEYS[1])
redis.call('UNLINK', KEYS[1])
return n
