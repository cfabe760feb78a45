-- Ack many messages.
--
--   KEYS  the queue's (see lib/layout.lua), what the connection holds
--   ARGV  ids
--   reply 1, or 0 when it does not hold all of them any more; nothing has
--         changed then
--
-- A crash before: nothing has happened.  After: all of them are gone.

-- include layout

local q, held = queue_keys(1)
local CHUNK = 500

for i = 1, #ARGV, CHUNK do
  if not holds(q, held, { unpack(ARGV, i, math.min(i + CHUNK - 1, #ARGV)) })
  then
    return 0
  end
end
need(q.z, 'ZREM')
for i = 1, #ARGV, CHUNK do
  local ids = { unpack(ARGV, i, math.min(i + CHUNK - 1, #ARGV)) }
  call('HDEL', held, unpack(ids))
  forget(q, ids)
end
return 1
