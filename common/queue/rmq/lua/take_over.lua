-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Give the messages and info of a queue from a consumer's old name to its new one, on a
-- cluster.
--
-- KEYS unacked consumers lease info | own_unacked=unacked own_info=info
-- ARGV former
--
--   former  the old name, whose keys come first
--   reply   1, or 0 when the old name has lost its lease: a cleaner may have been there
--
-- A crash before: the old name holds the messages.  After: the new one does, which is listed
-- and has a lease.  A repetition after a lost reply does nothing.

local call = redis.call

if call('HGET', own_info, 'was') == former then
  return 1
end
if call('EXISTS', lease) == 0 then
  return 0
end
-- DEL needs no memory; see claim.lua.
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
