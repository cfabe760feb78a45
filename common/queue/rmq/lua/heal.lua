-- Bring back what an older version of these tools, which claimed large messages by way
-- of another key, has left there.
--
--   KEYS  ready, delayed, priority, the list or sorted set that was left, rmq::queues
--   ARGV  '1' to change nothing; the queue's name
--   reply how many messages were brought back, at most 500 by one call; or all that
--         would be
--
-- A list was ready once, so its messages go in front of those there now.  A sorted set
-- was delayed or priority, where the scores have another size.
--
-- A crash before: nothing.  After: all of it has happened.

-- include rights

local ready, delayed, priority, left, queues = unpack(KEYS)
local call, MOST = redis.call, 500
local kind = call('TYPE', left).ok
local n = kind == 'list' and call('LLEN', left)
  or kind == 'zset' and call('ZCARD', left) or 0
if ARGV[1] == '1' or n == 0 then
  return n
end
n = math.min(n, MOST)
if kind == 'list' then
  for _ = 1, n do
    call('LMOVE', left, ready, 'LEFT', 'RIGHT')
  end
else
  need(left, 'ZREMRANGEBYRANK')
  local some = call('ZRANGE', left, 0, n - 1, 'WITHSCORES')
  for i = 1, #some, 2 do
    call('ZADD', tonumber(some[i + 1]) > 1000 and delayed or priority,
      some[i + 1], some[i])
  end
  call('ZREMRANGEBYRANK', left, 0, n - 1)
end
redis.pcall('SADD', queues, ARGV[2])
return n
