-- Publish messages that ask for no more than a place in ready, if their queue is known.
-- A publisher sends it as text, before it has asked anything, so it is short, and
-- whatever may be refused comes before the first change.
--
--   KEYS  ready, counters, marks (see lib/marks.lua), rmq::queues, settings
--   ARGV  place, before; the queue's name; then the elements
--   reply how many are ready, or 1 if the batch was marked before; 0: the queue is not
--         known, or its settings have a max-length
--
-- A crash before, an error, or 0: none is there.  After: all are, and have been counted
-- and marked, as far as possible.  A batch that is marked is not published again.

local ready, counters, marks, queues, settings = unpack(KEYS)

if redis.call('HGET', marks, ARGV[1]) then
  return 1
elseif redis.call('SISMEMBER', queues, ARGV[3]) == 0
    or redis.pcall('HEXISTS', settings, 'max-length') == 1 then
  return 0
end
local n = redis.call('LPUSH', ready, unpack(ARGV, 4))
redis.pcall('HINCRBY', counters, 'published', #ARGV - 3)
redis.pcall('HSET', marks, ARGV[1], ARGV[2] .. ' ')
redis.pcall('PEXPIRE', marks, 600000)
return n
