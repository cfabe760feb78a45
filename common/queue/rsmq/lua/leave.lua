-- Forget a connection that has no message of its queue any more.
--
-- KEYS q:PLACES held lease connections
-- ARGV connection
--
--   reply 1, or 0 when it still has messages, and nothing has changed
--
-- A crash before: it is listed until its lease is over, and a cleaner comes.
-- After: nothing of it is left.

-- include layout

if #held_by(q, held) > 0 then
  return 0
end
need(lease, 'ZREM')
call('DEL', held, lease)
call('ZREM', connections, connection)
return 1
