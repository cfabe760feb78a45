-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Renew the lease of a connection, and the time for which the messages that it holds are
-- hidden.
--
-- KEYS own=lease (z h x d held)...
-- ARGV ms
--
--   ms     from now on; '': as before
--   reply  the lease in milliseconds; 0: the lease is gone for good
--
-- Messages that were deleted, or received by others, are not held any more.
-- A crash before or after changes nothing but the times.

-- include layout

local lease = tonumber(call('HGET', own, 'lease'))
if not lease then
  return 0
end
need(own, 'HKEYS', 'HMGET', 'ZSCORE', 'ZADD', 'HDEL')
if ms ~= '' then
  lease = tonumber(ms)
  call('HSET', own, 'lease', int(lease))
end
call('PEXPIRE', own, int(lease))
local visible = int(now + lease)

-- An idle consumer of many queues mostly holds no message in any.
local all = {}
for k = first_z + each_z - 1, #KEYS, each_z do
  all[#all + 1] = KEYS[k]
end
local none = #all > 0 and #all < 8000 and call('EXISTS', unpack(all)) == 0

for k = first_z, none and 0 or #KEYS, each_z do
  local q, held = queue_keys(k)
  for ids in parts(call('HKEYS', held), 500) do
    local scores = {}
    for _, id in ipairs(ids) do
      if call('ZSCORE', q.z, id) and holds(q, held, { id }) then
        scores[#scores + 1] = visible
        scores[#scores + 1] = id
      else
        call('HDEL', held, id)
      end
    end
    if #scores > 0 then
      call('ZADD', q.z, 'XX', unpack(scores))
    end
  end
  call('PEXPIRE', held, int(lease))
end
return lease
