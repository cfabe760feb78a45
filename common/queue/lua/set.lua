-- Change settings of a queue in one step, even when memory is full: a limit may be
-- what makes room again.
--
--   KEYS  settings
--   ARGV  name, value ('': not set any more)...
--   reply how many settings there are
--
-- A crash before: nothing has changed.  After: all have.

-- include rights

for i = 1, #ARGV, 2 do
  need(KEYS[1], ARGV[i + 1] == '' and 'HDEL' or 'HSET')
end
-- PERSIST takes no memory, and after one such write Redis lets the rest pass.
redis.call('HLEN', KEYS[1])
redis.call('PERSIST', KEYS[1])
for i = 1, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', KEYS[1], ARGV[i])
  else
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  end
end
return redis.call('HLEN', KEYS[1])
