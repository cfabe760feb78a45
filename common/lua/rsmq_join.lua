-- Begin the lease of a connection.
--
--   KEYS  its lease, the set of connections, the set of names of queues, and
--         of each queue the hash
--   ARGV  name of the connection, host, pid, slots, milliseconds ('': what the
--         queues' vt says), how many of the queues it consumes, and of each
--         queue the name
--   reply for how many milliseconds it holds
--
-- The queues are made if need be.  The shortest vt of those that it consumes is
-- how long a crash may hide a message; but renewing has to have a chance.  Who
-- says a time hands messages out by receipt, and does not renew.
--
-- A crash before: nothing has happened.  After: the connection is listed until
-- its lease is over, and a cleaner has seen that.

-- include rsmq

local LEAST = 3000
local FIRST = 7
local lease, consumed = tonumber(ARGV[5]), tonumber(ARGV[6])
local by_receipt = lease

need(KEYS[1], 'HGET', 'HSET', 'PEXPIRE', 'ZADD')
need_create(KEYS[1])
-- It needs no memory; see claim.lua.
call('DEL', KEYS[1])
for i = 4, #KEYS do
  create(KEYS[i], KEYS[3], ARGV[i - 4 + FIRST], 30, 0, 65536)
  if not by_receipt and i - 4 < consumed then
    local vt = (tonumber(call('HGET', KEYS[i], 'vt')) or 30) * 1000
    lease = math.min(lease or vt, vt)
  end
end
lease = by_receipt or math.max(lease, LEAST)
call('HSET', KEYS[1], 'host', ARGV[2], 'pid', ARGV[3], 'slots', ARGV[4],
  'lease', int(lease),
  'queues', cjson.encode({ unpack(ARGV, FIRST, FIRST - 1 + consumed) }))
if by_receipt then
  call('HSET', KEYS[1], 'receipts', 1)
end
call('PEXPIRE', KEYS[1], int(lease))
call('ZADD', KEYS[2], 0, ARGV[1])
return lease
