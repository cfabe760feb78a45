-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Begin the lease of a connection.
--
-- KEYS own=lease connections names queue_key...
-- ARGV connection host pid slots ms consumed attempts makes queue...
-- NEEDS HGET HSET HSETNX SADD PEXPIRE ZADD
--
--   queue_key  the hash of each queue, then the counters of each that is consumed, then the
--              holders of each that is consumed
--   ms         of the lease; '': the shortest vt of the queues that are consumed
--   consumed   how many of the queues are consumed, the first ones
--   attempts   how many runs a message may have here
--   makes      '1': make queues that do not exist
--   reply      the lease in milliseconds
--
-- A crash hides a message for the lease, so that is the shortest vt, but at least LEAST, to
-- be renewed in time.  A connection with `ms` hands messages out by receipt, and does not
-- renew.
--
-- The counters keep the most runs that any consumer has allowed, for cleaners: when its lease
-- is over, nothing is left of a connection.
--
-- A crash before: nothing has happened.  After: the connection is listed until its lease is
-- over, and a cleaner has seen that.

-- include layout
-- include holders

local queues = { unpack(ARGV, first_queue) }
local hashes = { unpack(KEYS, first_queue_key, first_queue_key + #queues - 1) }
local counters = { unpack(KEYS, first_queue_key + #queues) }
local LEAST = 3000
local lease = tonumber(ms)
consumed = tonumber(consumed)
local holders = { unpack(counters, consumed + 1) }
local by_receipt = lease

need()
-- DEL needs no memory; see claim.lua of rmq.
call('DEL', own)
for i = 1, #queues do
  if makes == '1' then
    create(hashes[i], names, queues[i])
  end
  if not by_receipt and i <= consumed then
    local vt = (whole(call('HGET', hashes[i], 'vt')) or 30) * 1000
    lease = math.min(lease or vt, vt)
  end
end
lease = by_receipt or math.max(lease, LEAST)
call('HSET', own, 'host', host, 'pid', pid, 'slots', slots,
  'lease', int(lease),
  'queues', cjson.encode({ unpack(queues, 1, consumed) }))
if by_receipt then
  call('HSET', own, 'receipts', 1)
end
call('PEXPIRE', own, int(lease))
-- Older consumers, which are not among the holders of their queues, have a score of 0.
call('ZADD', connections, 1, connection)
for i = 1, consumed do
  local most = tonumber(redis.pcall('HGET', counters[i], 'attempts')) or 0
  if most < tonumber(attempts)
      and call('HEXISTS', hashes[i], 'vt') == 1 then
    redis.pcall('HSET', counters[i], 'attempts', attempts)
  end
  list_holder(holders[i], connection, connections)
end
return lease
