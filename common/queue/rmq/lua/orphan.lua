-- Remove a key of ours whose queue or connection nobody knows.
--
-- KEYS key=* known=* sign=*
-- ARGV owner kind [dry]
--
--   known  the set that would know its owner
--   sign   the owner's heartbeat or ready list
--   kind   'queue', 'connection', or 'held' (by messages of a queue, and so it stays while
--          any are ready)
--   dry    '1' to only say what would be
--   reply 1 if the key was removed, else 0
--
-- A crash before: nothing.  After: all of it has happened.

if redis.call('SISMEMBER', known, owner) == 1
    or kind ~= 'queue' and redis.call('EXISTS', sign) == 1 then
  return 0
end
return redis.call(dry == '1' and 'EXISTS' or 'DEL', key)
