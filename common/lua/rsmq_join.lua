-- Begin the lease of a connection.
--
--   KEYS  its lease, the set of connections, the set of names of queues, and
--         of each queue the hash
--   ARGV  name of the connection, host, pid, slots, milliseconds ('': what the
--         queues' vt says), and of each queue the name
--   reply for how many milliseconds it holds
--
-- The queues are made if need be.  The shortest vt of them is how long a crash
-- may hide a message; but renewing has to have a chance.
--
-- A crash before: nothing has happened.  After: the connection is listed until
-- its lease is over, and a cleaner has seen that.

-- include rsmq

local LEAST = 3000
local lease = tonumber(ARGV[5])

-- It needs no memory; see claim.lua.
call('DEL', KEYS[1])
for i = 4, #KEYS do
  create(KEYS[i], KEYS[3], ARGV[i + 2], 30, 0, 65536)
  if ARGV[5] == '' then
    local vt = (tonumber(call('HGET', KEYS[i], 'vt')) or 30) * 1000
    lease = math.min(lease or vt, vt)
  end
end
lease = math.max(lease, LEAST)
call('HSET', KEYS[1], 'host', ARGV[2], 'pid', ARGV[3], 'slots', ARGV[4],
  'lease', int(lease), 'queues', cjson.encode({ unpack(ARGV, 6) }))
call('PEXPIRE', KEYS[1], int(lease))
call('ZADD', KEYS[2], 0, ARGV[1])
return lease
