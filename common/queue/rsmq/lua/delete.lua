-- Remove a queue that nobody uses, and all that is kept about it and about the messages
-- that it has rejected.
--
--   KEYS  the set of names, the set of connections; of the queue and of that of the
--         rejected ones those (see lib/layout.lua), counters, paused, rate, later,
--         watch, idle, settings, minutes, hours; then the leases of the connections
--   ARGV  the names of both queues, 1 to only look, then the connections' names in the
--         same order
--   reply {consumers of it that live, 1 if the queue is known, how many can be
--         received, how many are hidden, how many rejected}, or nothing when the
--         connections are others now
--
-- A crash before: nothing.  After: it is gone.  Nothing is done if there are consumers.

-- include layout

local names, connections = unpack(KEYS, 1, 2)
local q, rejected, consumers = queue_keys(3), queue_keys(16), 0

if call('ZCARD', connections) ~= #ARGV - 3 then
  return false
end
for i = 4, #ARGV do
  if not call('ZSCORE', connections, ARGV[i]) then
    return false
  end
  local lease = unpack(KEYS, 25 + i, 25 + i)
  local queues = call('HGET', lease, 'queues')
  for _, name in pairs(queues and cjson.decode(queues) or {}) do
    if name == ARGV[1] or name == ARGV[2] then
      consumers = consumers + 1
    end
  end
end
local there = call('ZCARD', q.z)
local ready = call('ZCOUNT', q.z, '-inf', int(now))
local reply = { consumers, call('HEXISTS', q.h, 'vt'), ready, there - ready,
  call('ZCARD', rejected.z) }
if consumers > 0 or ARGV[3] == '1' then
  return reply
end
need(names, 'SREM')
call('UNLINK', unpack(KEYS, 3, 28))
call('SREM', names, ARGV[1], ARGV[2])
return reply
