-- Carry out one small write even when memory is full: a consumer that could not join
-- could never make room.
--
-- KEYS key=*
-- ARGV command argument...
--
--   reply the command's
--
-- PERSIST takes no memory, and after one such write Redis lets the rest of a script
-- pass.  (It ends a time to live; commands used here set one, or are for keys without.)

redis.call('PERSIST', key)
return redis.call(command, key, unpack(ARGV, first_argument))
