-- Mark and count messages that have just been put in, by a LPUSH or ZADD before this
-- one in the same transaction, and see to it that their queue is known.  It goes out as
-- text each time, so it is short.
--
--   KEYS  where they are, counters, marks (see lib/marks.lua), rmq::queues, settings
--   ARGV  place, before; how many messages; the queue's name; the command that put them
--         in, and the one that counts what is in their key
--   reply 1 if the settings have a max-length, which nothing here looks at
--
-- A crash before: they are not there.  After: they are, are marked, and, unless
-- something else is under that key, counted.

-- Where the command was refused, there is nothing to mark.  Its right may have been revoked
-- since MULTI; servers before Redis 7 cannot tell.
local place, counters, marks, queues, settings = unpack(KEYS)
local may = redis.acl_check_cmd

assert(not may or may(ARGV[5], place, 0, 0))
redis.call(ARGV[6], place)
if ARGV[4] ~= '' then
  redis.pcall('SADD', queues, ARGV[4])
end
redis.pcall('HINCRBY', counters, 'published', ARGV[3])
redis.call('HSET', marks, ARGV[1], ARGV[2] .. ' ')
redis.call('PEXPIRE', marks, 600000)
return redis.pcall('HEXISTS', settings, 'max-length') == 1 and 1 or 0
