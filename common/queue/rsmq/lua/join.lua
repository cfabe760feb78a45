-- Begin the lease of a connection.
--
-- KEYS own=lease connections names queue_key...
-- ARGV connection host pid slots ms consumed attempts makes queue...
--
--   queue_key  of each queue the hash, then of each that it consumes the counters
--   ms         of the lease; '': what the queues' vt says
--   consumed   how many of the queues it consumes, the first ones
--   attempts   how many runs a message may have here
--   makes      '1' to make the queues that do not exist
--   reply for how many milliseconds it holds
--
-- The shortest vt of those that it consumes is how long a crash may hide a message; but
-- renewing has to have a chance.  A connection that names its own time hands messages
-- out by receipt, and does not renew.
--
-- Nothing is left of a connection when its lease is over; so a cleaner finds how many
-- runs a message may have among the counters: the most that anybody has allowed.
--
-- A crash before: nothing.  After: the connection is listed until its lease is over,
-- and a cleaner has seen that.

-- include layout

local queues = { unpack(ARGV, first_queue) }
local hashes = { unpack(KEYS, first_queue_key, first_queue_key + #queues - 1) }
local counters = { unpack(KEYS, first_queue_key + #queues) }
local LEAST = 3000
local lease = tonumber(ms)
consumed = tonumber(consumed)
local by_receipt = lease

need(own, 'HGET', 'HSET', 'PEXPIRE', 'ZADD')
need_create(own)
-- DEL needs no memory; see claim.lua.
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
call('ZADD', connections, 0, connection)
for i = 1, consumed do
  local most = tonumber(redis.pcall('HGET', counters[i], 'attempts')) or 0
  if most < tonumber(attempts)
      and call('HEXISTS', hashes[i], 'vt') == 1 then
    redis.pcall('HSET', counters[i], 'attempts', attempts)
  end
end
return lease
