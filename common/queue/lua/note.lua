-- Note how a queue is, in place of what was noted in this minute, and in this hour.
--
--   KEYS  minutes, hours
--   ARGV  the note; then of each key the field, and in how many seconds it lapses
--
-- A crash before: nothing has happened.  After: all of it is noted.

for i, key in ipairs(KEYS) do
  local field, lapse = unpack(ARGV, 2 * i, 2 * i + 1)
  -- Whoever may not do this leaves nothing that would stay.
  local there = redis.call('EXPIRE', key, lapse)
  redis.call('HSET', key, field, ARGV[1])
  if there == 0 then
    redis.call('EXPIRE', key, lapse)
  end
end
