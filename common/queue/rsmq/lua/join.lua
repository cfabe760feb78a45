-- Begin the lease of a connection.
--
--   KEYS  its lease, the set of connections, the set of names of queues, of
--         each queue the hash, and of each that it consumes the counters
--   ARGV  name of the connection, host, pid, slots, milliseconds ('': what the
--         queues' vt says), how many of the queues it consumes, how many runs a
--         message may have here, '1' to make the queues that do not exist, and
--         of each queue the name
--   reply for how many milliseconds it holds
--
-- The shortest vt of those that it consumes is how long a crash may hide a
-- message; but renewing has to have a chance.  A connection that names its own
-- time hands messages out by receipt, and does not renew.
--
-- Nothing is left of a connection when its lease is over; so a cleaner finds how
-- many runs a message may have among the counters: the most that anybody has
-- allowed.
--
-- A crash before: nothing has happened.  After: the connection is listed until
-- its lease is over, and a cleaner has seen that.

-- include layout

local LEAST = 3000
local FIRST = 9
local lease, consumed = tonumber(ARGV[5]), tonumber(ARGV[6])
local by_receipt = lease

need(KEYS[1], 'HGET', 'HSET', 'PEXPIRE', 'ZADD')
need_create(KEYS[1])
-- DEL needs no memory; see claim.lua.
call('DEL', KEYS[1])
local counters = #KEYS - consumed
for i = 4, counters do
  if ARGV[8] == '1' then
    create(KEYS[i], KEYS[3], ARGV[i - 4 + FIRST], 30, 0, 65536)
  end
  if not by_receipt and i - 4 < consumed then
    local vt = (whole(call('HGET', KEYS[i], 'vt')) or 30) * 1000
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
for i = counters + 1, #KEYS do
  local most = tonumber(redis.pcall('HGET', KEYS[i], 'attempts')) or 0
  if most < tonumber(ARGV[7])
      and call('HEXISTS', KEYS[i - counters + 3], 'vt') == 1 then
    redis.pcall('HSET', KEYS[i], 'attempts', ARGV[7])
  end
end
return lease
