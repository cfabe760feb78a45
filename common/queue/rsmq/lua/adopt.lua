-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Give a message, named by its id, to a connection of its own, as if it had been handed out
-- by receipt: in RSMQ everybody with a message's id may settle it.
--
-- KEYS q:PLACES held lease connections holders
-- ARGV id connection host pid queue ms
--
--   ms     of the connection's lease
--   reply the message, or nil if the queue has none with this id
--
-- An adopted message is not received, and hidden no longer than before; another
-- receiver keeps the message until this connection settles it.
--
-- A crash before: nothing has happened.  After: the lease ends by itself.

-- include layout
-- include holders

local score = call('ZSCORE', q.z, id)
local m = read(q, { id })[1]
if not score or not m.body then
  return false
end
need(held, 'HSET', 'PEXPIRE', 'ZADD', 'EXISTS')
if m.runs == 0 then
  call('HSET', q.h, id .. ':rc', 0)
end
call('HSET', held, id, m.runs)
call('HSET', lease, 'host', host, 'pid', pid, 'slots', 1, 'lease', ms,
  'receipts', 1, 'queues', cjson.encode({ queue }))
call('PEXPIRE', held, ms)
call('PEXPIRE', lease, ms)
call('ZADD', connections, 1, connection)
list_holder(holders, connection, connections)
-- The last receive of an unacked message is a run that goes on, not an attempt before it.
if tonumber(score) > now and m.runs > 0
    and not await_run(q, { id })[1] then
  m.runs = m.runs - 1
end
return element(id, m.body, m.runs, m.extra)
