-- Number the messages that a connection hands out by receipt.
--
-- KEYS held lease
-- ARGV id...
--
--   reply how many there are, or 0 and nothing done when the lease is over, or the
--         connection does not hold all of them any more
--
-- The lease gets a field receipt:N for each, from 1: its id.
--
-- A crash before or after: nobody knows of the receipts; the lease ends by itself.

if redis.call('EXISTS', lease) == 0 then
  return 0
end
for i = 1, #ARGV do
  if redis.call('HEXISTS', held, ARGV[i]) == 0 then
    return 0
  end
end
for i = 1, #ARGV do
  redis.call('HSET', lease, 'receipt:' .. i, ARGV[i])
end
return #ARGV
