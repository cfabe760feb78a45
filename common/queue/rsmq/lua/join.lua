-- Begin the lease of a connection.
--
--   KEYS  its lease, the set of connections, the set of names of queues, of each queue
--         the hash, and of each that it consumes the counters
--   ARGV  name of the connection, host, pid, slots, milliseconds ('': what the queues'
--         vt says), how many of the queues it consumes, how many runs a message may
--         have here, '1' to make the queues that do not exist, and of each queue the
--         name
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

local own, connections, names = unpack(KEYS, 1, 3)
local queues = { unpack(ARGV, 9) }
local hashes = { unpack(KEYS, 4, 3 + #queues) }
local counters = { unpack(KEYS, 4 + #queues) }
local LEAST = 3000
local lease, consumed = tonumber(ARGV[5]), tonumber(ARGV[6])
local by_receipt = lease

need(own, 'HGET', 'HSET', 'PEXPIRE', 'ZADD')
need_create(own)
-- DEL needs no memory; see claim.lua.
call('DEL', own)
for i = 1, #queues do
  if ARGV[8] == '1' then
    create(hashes[i], names, queues[i])
  end
  if not by_receipt and i <= consumed then
    local vt = (whole(call('HGET', hashes[i], 'vt')) or 30) * 1000
    lease = math.min(lease or vt, vt)
  end
end
lease = by_receipt or math.max(lease, LEAST)
call('HSET', own, 'host', ARGV[2], 'pid', ARGV[3], 'slots', ARGV[4],
  'lease', int(lease),
  'queues', cjson.encode({ unpack(queues, 1, consumed) }))
if by_receipt then
  call('HSET', own, 'receipts', 1)
end
call('PEXPIRE', own, int(lease))
call('ZADD', connections, 0, ARGV[1])
for i = 1, consumed do
  local most = tonumber(redis.pcall('HGET', counters[i], 'attempts')) or 0
  if most < tonumber(ARGV[7])
      and call('HEXISTS', hashes[i], 'vt') == 1 then
    redis.pcall('HSET', counters[i], 'attempts', ARGV[7])
  end
end
return lease
