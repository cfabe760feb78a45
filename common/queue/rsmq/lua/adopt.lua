-- Take a message that a user knows the id of into the hands of a connection of
-- its own, as if it had been handed out by receipt: whoever knows the id of a
-- message may do with it what he likes, as everywhere in RSMQ.
--
-- KEYS q:PLACES held lease connections
-- ARGV id connection host pid queue ms
--
--   ms     how long the connection may do something with it
--   reply the message, or nil when there is none of this id
--
-- An adopted message is not received, and hidden no longer than before; another
-- receiver keeps it until it is settled here.
--
-- A crash before: nothing has happened.  After: the lease ends by itself.

-- include layout

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
call('ZADD', connections, 0, connection)
-- The run that it is in now is not over.
if tonumber(score) > now and m.runs > 0
    and not await_run(q, { id })[1] then
  m.runs = m.runs - 1
end
return element(id, m.body, m.runs, m.extra)
