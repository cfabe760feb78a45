-- Remove a queue that nobody uses, and all that is kept about it.
--
--   KEYS  rmq::queues, rmq::connections, five keys of the queue: ready, rejected
--         delayed, counters, paused; then four of each connection: heartbeat,
--         queues, the queue's consumers, the queue's unacked
--   ARGV  the queue's name, then the connections' names in the same order
--   reply {consumers of it that live, unacked messages that dead connections
--         hold, 1 if it was removed}, with {0, 0, 0} when the connections are
--         others now
--
-- A crash before: nothing has happened.  After: it is gone.  Nothing is done
-- if one of the first two is not 0.

local call = redis.call
local queue, consumers, unacked = ARGV[1], 0, 0

if call('SCARD', KEYS[2]) ~= #ARGV - 1 then
  return { 0, 0, 0 }
end
for i = 2, #ARGV do
  local at = 8 + 4 * (i - 2)
  if call('SISMEMBER', KEYS[2], ARGV[i]) == 0 then
    return { 0, 0, 0 }
  end
  local held = call('LLEN', KEYS[at + 3])
  if call('PTTL', KEYS[at]) <= 0 then
    unacked = unacked + held
  elseif held > 0 or call('SISMEMBER', KEYS[at + 1], queue) == 1 then
    consumers = consumers + math.max(1, call('SCARD', KEYS[at + 2]))
  end
end
if consumers > 0 or unacked > 0 then
  return { consumers, unacked, 0 }
end
for i = 3, 7 do
  call('UNLINK', KEYS[i])
end
for at = 8, #KEYS, 4 do
  call('UNLINK', KEYS[at + 2])
  call('SREM', KEYS[at + 1], queue)
end
call('SREM', KEYS[1], queue)
return { 0, 0, 1 }
