-- Ack the oldest messages of an unacked list.
--
--   KEYS  unacked
--   ARGV  how many, the oldest of them, the newest of them
--   reply how many, or 0 and nothing done when these are not where they are
--         expected to be
--
-- No message may be equal to another element of the list: then the places of
-- these two say what is between them.  Else, ack_equal.lua acks them.
--
-- A crash before: all are unacked.  After: all are gone.

local n = tonumber(ARGV[1])
if redis.call('LINDEX', KEYS[1], -1) ~= ARGV[2]
    or redis.call('LINDEX', KEYS[1], -n) ~= ARGV[3] then
  return 0
end
redis.call('LTRIM', KEYS[1], 0, -n - 1)
return n
