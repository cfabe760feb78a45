-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Ack many messages.
--
-- KEYS q:PLACES held
-- ARGV id...
--
--   reply 1; 0 and nothing done: the connection does not hold all messages any more
--
-- A crash before: nothing has happened.  After: all messages are gone.

-- include layout

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
