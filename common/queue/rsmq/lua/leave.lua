-- Forget a connection that has no message of its queue any more.
--
--   KEYS  the queue's (see lib/layout.lua), what it holds, its lease, the set of
--         connections
--   ARGV  its name
--   reply 1, or 0 when it still has messages, and nothing has changed
--
-- A crash before: it is listed until its lease is over, and a cleaner comes.
-- After: nothing of it is left.

-- include layout

if #held_by(queue_keys(1), KEYS[5]) > 0 then
  return 0
end
need(KEYS[6], 'ZREM')
call('DEL', KEYS[5], KEYS[6])
call('ZREM', KEYS[7], ARGV[1])
return 1
