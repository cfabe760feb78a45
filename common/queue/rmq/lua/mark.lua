-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Mark and count messages that a LPUSH or ZADD has put into a queue, earlier in the same
-- transaction, and list the queue.  The script is sent as text each time, so it is short.
--
-- KEYS to=* counters marks=* known rules=settings
-- ARGV slot before keep count queue put counts
--
--   to            the key with the messages
--   marks, slot, before  as in lib/marks.lua
--   keep          milliseconds that the marks stay after this one
--   count         number of messages
--   queue         the queue's name; '': do not list it
--   put, counts   the command that put the messages in, and one that reads their number
--   reply         1 if the queue's settings have a max-length, which this script ignores
--
-- A crash before: the messages are not there.  After: they are there, marked, and, unless
-- counters has a wrong type, counted.

-- If the command was refused, as its right may have been revoked since MULTI, there is
-- nothing to mark.  Before Redis 7, that is not noticed.
local r, may = redis, redis.acl_check_cmd

assert(not may or may(put, to, 0, 0))
r.call(counts, to)
if queue ~= '' then
  r.pcall('SADD', known, queue)
end
r.pcall('HINCRBY', counters, 'published', count)
r.call('HSET', marks, slot, before .. ' ')
r.call('PEXPIRE', marks, keep)
return r.pcall('HEXISTS', rules, 'max-length') == 1 and 1 or 0
