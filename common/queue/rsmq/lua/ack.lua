-- Ack many messages.
--
--   KEYS  the queue's (see lib/layout.lua), what the connection holds
--   ARGV  ids
--   reply 1, or 0 and nothing done when it does not hold all of them any more
--
-- A crash before: nothing.  After: all of them are gone.

-- include layout

local q, held = queue_keys(1)

for ids in parts(ARGV, 500) do
  if not holds(q, held, ids) then
    return 0
  end
end
need(q.z, 'ZREM')
for ids in parts(ARGV, 500) do
  call('HDEL', held, unpack(ids))
  forget(q, ids)
end
return 1
