-- A consumer on a cluster has another name: what it holds of a queue under the old one
-- is the new one's from now on.
--
-- KEYS unacked consumers lease info | own_unacked=unacked own_info=info
-- ARGV former
--
--   former  the old name, whose keys come first
--   reply   1, or 0 when the old name has lost its lease: a cleaner may have been there
--
-- A crash before: the old name holds them.  After: the new one does, which is listed and
-- has a lease.  Again after an answer that was lost: nothing more happens.

local call = redis.call

if call('HGET', own_info, 'was') == former then
  return 1
end
if call('EXISTS', lease) == 0 then
  return 0
end
-- Needs no memory, and lets the rest pass when there is none; see claim.lua.
call('DEL', lease, consumers)
if call('EXISTS', unacked) == 1 then
  call('RENAME', unacked, own_unacked)
end
if call('EXISTS', info) == 1 then
  call('RENAME', info, own_info)
end
call('HSET', own_info, 'was', former)
call('EXPIRE', own_info, 86400)
return 1
