-- Remove a queue that nobody uses, and all that is kept about it.
--
--   KEYS  rmq::queues, rmq::connections, the queue's (see lib/place.lua), rejected,
--         rate, counters, paused, settings, watch, idle, minutes, hours, ready and
--         rejected in the form for a cluster, outgoing, incoming; then six of each
--         connection: heartbeat, queues, the queue's consumers, the queue's unacked,
--         and these in the form for a cluster
--   ARGV  the queue's name, 1 to only look, then the connections' names in the same
--         order
--   reply {consumers of it that live, unacked messages that dead connections hold, or
--         that are on their way to another queue, 1 if the queue was known, how many
--         were ready, rejected, delayed, 1 if somebody may wait for what becomes of
--         those, how many keys are there in the form for a cluster}, or nothing when
--         the connections are others now
--
-- A crash before: nothing.  After: it is gone.  Nothing is done if one of the first
-- two, or the last, is not 0: programs of that form find their messages by the names
-- listed here.

-- include rights

local call = redis.call
local queue, consumers, unacked = ARGV[1], 0, 0
local queues, connections, ready, priority, delayed, _, _, results, rejected =
  unpack(KEYS, 1, 9)
local other_ready, other_rejected, outgoing, incoming = unpack(KEYS, 18, 21)
local cluster = call('EXISTS', other_ready, other_rejected)

-- The six keys of the nth connection.
local function of_connection(n)
  return unpack(KEYS, 16 + 6 * n, 21 + 6 * n)
end

-- On a cluster the keys that are in other slots are replaced by one that never exists,
-- and the heartbeat by the lease of the queue.
local alone = queues:sub(-6) == '::none'
if not alone and call('SCARD', connections) ~= #ARGV - 2 then
  return false
end
for i = 3, #ARGV do
  local heartbeat, listed, own, held, other, other_held = of_connection(i - 2)
  if not alone and call('SISMEMBER', connections, ARGV[i]) == 0 then
    return false
  end
  local n = call('LLEN', held)
  cluster = cluster + call('EXISTS', other, other_held)
  if call('PTTL', heartbeat) <= 0 then
    unacked = unacked + n
  elseif alone or n > 0 or call('SISMEMBER', listed, queue) == 1 then
    consumers = consumers + math.max(1, call('SCARD', own))
  end
end
-- What is on its way to another queue is not to be lost; only a look does not mind.
if ARGV[2] ~= '1' then
  unacked = unacked + call('HLEN', outgoing)
end
local reply = { consumers, unacked, call('SISMEMBER', queues, queue),
  call('LLEN', ready) + call('ZCARD', priority), call('LLEN', rejected),
  call('ZCARD', delayed), call('EXISTS', results), cluster }
if consumers > 0 or unacked > 0 or cluster > 0 or ARGV[2] == '1' then
  return reply
end
need(queues, 'SREM')
call('UNLINK', unpack(KEYS, 3, 17))
-- A mark may still keep a message from arriving twice.
call('PEXPIRE', incoming, 86400000)
for i = 3, #ARGV do
  local _, listed, own = of_connection(i - 2)
  call('UNLINK', own)
  call('SREM', listed, queue)
end
call('SREM', queues, queue)
return reply
