-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Remove a queue without consumers and unacked messages, with all of its keys.
--
-- KEYS names=known listed q:PLACES rejected rate counters paused settings watch idle
--      holders slots minutes hours ended other-ready other-rejected outgoing incoming | (lease queues
--      consumers unacked other-consumers other-unacked)...
-- ARGV queue look connection...
--
--   lease       and the keys behind it, of each connection
--   look        '1': change nothing
--   connection  in the order of their keys
--   reply {live consumers; messages that are unacked by dead connections or, unless look,
--         on their way to another queue; 1 if the queue was known; ready, rejected and
--         delayed messages; 1 if a program may wait for a result; number of keys in the
--         form for a cluster}, or nothing when other connections are listed now
--
-- A crash before: nothing has happened.  After: the queue is gone.  Nothing is done if one
-- of the first two, or the last, is not 0: programs that use the keys for a cluster find
-- their messages by the names listed here.

-- include rights

local call = redis.call
local consumers, unacked = 0, 0
local cluster = call('EXISTS', other_ready, other_rejected)

-- The keys of a connection.
local function of_connection(i)
  local first = first_lease + each_lease * (i - first_connection)
  return unpack(KEYS, first, first + each_lease - 1)
end

-- On a cluster keys in other slots are replaced by one that never exists, and the heartbeat
-- by the lease of the queue.
local alone = names:sub(-6) == '::none'
if not alone and call('SCARD', listed) ~= #ARGV - first_connection + 1 then
  return false
end
for i = first_connection, #ARGV do
  local lease, queues, own, held, other, other_held = of_connection(i)
  if not alone and call('SISMEMBER', listed, ARGV[i]) == 0 then
    return false
  end
  local n = call('LLEN', held)
  cluster = cluster + call('EXISTS', other, other_held)
  if call('PTTL', lease) <= 0 then
    unacked = unacked + n
  elseif alone or n > 0 or call('SISMEMBER', queues, queue) == 1 then
    consumers = consumers + math.max(1, call('SCARD', own))
  end
end
if look ~= '1' then
  unacked = unacked + call('HLEN', outgoing)
end
local reply = { consumers, unacked, call('SISMEMBER', names, queue),
  call('LLEN', q.ready) + call('ZCARD', q.priority), call('LLEN', rejected),
  call('ZCARD', q.delayed), call('EXISTS', q.results), cluster }
if consumers > 0 or unacked > 0 or cluster > 0 or look == '1' then
  return reply
end
need(names, 'SREM')
-- The counts of batches with open members: a queue made anew would wait for these.
local held = call('EXISTS', q.locks) == 1 and call('HGETALL', q.locks) or {}
for i = 1, #held, 2 do
  local batch = held[i]:sub(1, 1) == 'm' and held[i + 1]:match('^%S+ (.*) %d+$')
  if batch then
    call('UNLINK', q.results .. 'batch:' .. batch)
  end
end
call('UNLINK', q.ready, q.priority, q.delayed, q.locks, q.clock, q.results, rejected,
  rate, counters, paused, settings, watch, idle, holders, slots, minutes, hours, ended)
-- For a day, the marks in incoming keep messages from arriving twice.
call('PEXPIRE', incoming, 86400000)
for i = first_connection, #ARGV do
  local _, queues, own = of_connection(i)
  call('UNLINK', own)
  call('SREM', queues, queue)
end
call('SREM', names, queue)
return reply
