-- Remove a queue that nobody uses, and all that is kept about it.
--
--   KEYS  rmq::queues, rmq::connections, the queue's (see lib/place.lua),
--         rejected, rate, counters, paused, settings, watch, idle, ready and rejected in
--         the form for a cluster, outgoing, incoming; then six of each connection: heartbeat, queues, the queue's
--         consumers, the queue's unacked, and these in the form for a cluster
--   ARGV  the queue's name, 1 to only look, then the connections' names in the
--         same order
--   reply {consumers of it that live, unacked messages that dead connections
--         hold, or that are on their way to another queue, 1 if the queue was known, how many were ready, rejected,
--         delayed, 1 if somebody may wait for what becomes of those, how many
--         keys are there in the form for a cluster}, or nothing when the
--         connections are others now
--
-- A crash before: nothing has happened.  After: it is gone.  Nothing is done
-- if one of the first two, or the last, is not 0: programs of that form
-- find their messages by the names that are listed here.

-- include rights

local call = redis.call
local queue, consumers, unacked = ARGV[1], 0, 0
local cluster = call('EXISTS', KEYS[16], KEYS[17])

-- On a cluster the keys that are in other slots are replaced by one that never exists,
-- and the heartbeat by the lease of the queue.
local alone = KEYS[1]:sub(-6) == '::none'
if not alone and call('SCARD', KEYS[2]) ~= #ARGV - 2 then
  return false
end
for i = 3, #ARGV do
  local at = 20 + 6 * (i - 3)
  if not alone and call('SISMEMBER', KEYS[2], ARGV[i]) == 0 then
    return false
  end
  local held = call('LLEN', KEYS[at + 3])
  cluster = cluster + call('EXISTS', KEYS[at + 4], KEYS[at + 5])
  if call('PTTL', KEYS[at]) <= 0 then
    unacked = unacked + held
  elseif alone or held > 0 or call('SISMEMBER', KEYS[at + 1], queue) == 1 then
    consumers = consumers + math.max(1, call('SCARD', KEYS[at + 2]))
  end
end
-- What is on its way to another queue is not to be lost; only a look does not mind.
if ARGV[2] ~= '1' then
  unacked = unacked + call('HLEN', KEYS[18])
end
local reply = { consumers, unacked, call('SISMEMBER', KEYS[1], queue),
  call('LLEN', KEYS[3]) + call('ZCARD', KEYS[4]), call('LLEN', KEYS[9]),
  call('ZCARD', KEYS[5]), call('EXISTS', KEYS[8]), cluster }
if consumers > 0 or unacked > 0 or cluster > 0 or ARGV[2] == '1' then
  return reply
end
need(KEYS[1], 'SREM')
for i = 3, 15 do
  call('UNLINK', KEYS[i])
end
-- A mark may still keep a message from arriving twice.
call('PEXPIRE', KEYS[19], 86400000)
for at = 20, #KEYS, 6 do
  call('UNLINK', KEYS[at + 2])
  call('SREM', KEYS[at + 1], queue)
end
call('SREM', KEYS[1], queue)
return reply
