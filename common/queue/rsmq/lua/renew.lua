-- Renew the lease of a connection, and with it the time for which nobody else can
-- receive what it holds.
--
--   KEYS  the lease, and of each queue its keys (see lib/layout.lua) and what the
--         connection holds
--   ARGV  milliseconds from now on ('': as before)
--   reply for how many milliseconds it holds now, or 0 when it is gone: it cannot come
--         back
--
-- Messages that somebody else has received or deleted are not held any more.
-- A crash before or after changes nothing but the times.

-- include layout

local own = KEYS[1]
local lease = tonumber(call('HGET', own, 'lease'))
if not lease then
  return 0
end
need(own, 'HKEYS', 'HMGET', 'ZSCORE', 'ZADD', 'HDEL')
if ARGV[1] ~= '' then
  lease = tonumber(ARGV[1])
  call('HSET', own, 'lease', int(lease))
end
call('PEXPIRE', own, int(lease))
local visible = int(now + lease)

-- Of many queues, an idle consumer mostly holds nothing in any.
local all = {}
for k = 2, #KEYS, 5 do
  all[#all + 1] = select(5, unpack(KEYS, k, k + 4))
end
local none = #all > 0 and #all < 8000 and call('EXISTS', unpack(all)) == 0

for k = 2, none and 0 or #KEYS, 5 do
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
