-- Mark and count messages that have just been put in, by a LPUSH or ZADD before this
-- one in the same transaction, and see to it that their queue is known.  It goes out as
-- text each time, so it is short.
--
-- KEYS to=* counters marks=* known rules=settings
-- ARGV slot before count queue put counts
--
--   to            where they are
--   marks, slot, before  as in lib/marks.lua
--   count         how many messages
--   queue         its name, '' where it is not to be made known
--   put, counts   the command that put them in, and the one that counts what is there
--   reply 1 if the rules, the queue's settings, have a max-length, which nothing here looks at
--
-- A crash before: they are not there.  After: they are, are marked, and, unless
-- something else is under that key, counted.

-- Where the command was refused, there is nothing to mark.  Its right may have been revoked
-- since MULTI; servers before Redis 7 cannot tell.
local r, may = redis, redis.acl_check_cmd

assert(not may or may(put, to, 0, 0))
r.call(counts, to)
if queue ~= '' then
  r.pcall('SADD', known, queue)
end
r.pcall('HINCRBY', counters, 'published', count)
r.call('HSET', marks, slot, before .. ' ')
r.call('PEXPIRE', marks, 600000)
return r.pcall('HEXISTS', rules, 'max-length') == 1 and 1 or 0
