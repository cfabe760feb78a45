-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Add to the counts of a queue.
--
-- KEYS counters [exists=*]
-- ARGV (field number)...
--
--   exists  a key of the queue, without which nothing is counted
--
-- For rates, the hash keeps the counts at the beginning of the last two minutes in which
-- something was counted; see mq-layout(7).
-- A crash before: nothing was counted.  After: everything.

if exists and redis.call('EXISTS', exists) == 0 then
  return 0
end
-- PERSIST needs no memory; see write_when_full.lua.
redis.call('PERSIST', counters)

local time = tonumber(redis.call('TIME')[1])
local old = redis.call('HMGET', counters, 'now_s', 'now_in', 'now_out',
  'published', 'done', 'failed')
if time - (tonumber(old[1]) or 0) >= 60 then
  redis.call('HSET', counters,
    'then_s', old[1] or time, 'then_in', old[2] or 0, 'then_out', old[3] or 0,
    'now_s', time, 'now_in', tonumber(old[4]) or 0,
    'now_out', (tonumber(old[5]) or 0) + (tonumber(old[6]) or 0))
end
for i = first_field, #ARGV, each_field do
  local field, n = ARGV[i], ARGV[i + 1]
  if field == 'done' then
    -- The number and its time are written by one command, as most calls have this field.
    redis.call('HSET', counters, field,
      string.format('%.0f', (tonumber(old[5]) or 0) + n), 'done_s', time)
  else
    redis.call('HINCRBY', counters, field, n)
  end
end
return 1
