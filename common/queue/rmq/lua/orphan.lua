-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Remove keys of these tools whose queue or connection is not listed.
--
-- KEYS known=* sign=* key...
-- ARGV owner [dry]
--
--   known  the set that lists such owners
--   sign   the owner's heartbeat or ready list; while it exists, the keys stay
--   dry    '1': change nothing
--   reply  how many keys were (or would be) removed
--
-- A crash before: nothing has happened.  After: everything has.

if redis.call('SISMEMBER', known, owner) == 1 or redis.call('EXISTS', sign) == 1 then
  return 0
end
return redis.call(dry == '1' and 'EXISTS' or 'DEL', unpack(KEYS, first_key))
