-- Remove a key of these tools whose queue or connection is not listed.
--
-- KEYS key=* known=* sign=*
-- ARGV owner kind [dry]
--
--   known  the set that lists such owners
--   sign   the owner's heartbeat or ready list
--   kind   'queue'; 'connection' or 'held': the key stays while sign exists, a heartbeat or,
--          as messages of the queue need the key, a ready list
--   dry    '1': change nothing
--   reply  1 if the key was (or would be) removed, else 0
--
-- A crash before: nothing has happened.  After: everything has.

if redis.call('SISMEMBER', known, owner) == 1
    or kind ~= 'queue' and redis.call('EXISTS', sign) == 1 then
  return 0
end
return redis.call(dry == '1' and 'EXISTS' or 'DEL', key)
