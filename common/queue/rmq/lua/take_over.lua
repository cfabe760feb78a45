-- A consumer on a cluster has another name: what it holds of a queue under the old one
-- is the new one's from now on.
--
--   KEYS  of the old name: unacked, consumers, lease, info; of the new one: unacked,
--         info
--   ARGV  the old name
--   reply 1, or 0 when the old name has lost its lease: a cleaner may have been there
--
-- A crash before: the old name holds them.  After: the new one does, which is listed and
-- has a lease.  Again after an answer that was lost: nothing more happens.

local call = redis.call

if call('HGET', KEYS[6], 'was') == ARGV[1] then
  return 1
end
if call('EXISTS', KEYS[3]) == 0 then
  return 0
end
-- Needs no memory, and lets the rest pass when there is none; see claim.lua.
call('DEL', KEYS[3], KEYS[2])
if call('EXISTS', KEYS[1]) == 1 then
  call('RENAME', KEYS[1], KEYS[5])
end
if call('EXISTS', KEYS[4]) == 1 then
  call('RENAME', KEYS[4], KEYS[6])
end
call('HSET', KEYS[6], 'was', ARGV[1])
call('EXPIRE', KEYS[6], 86400)
return 1
