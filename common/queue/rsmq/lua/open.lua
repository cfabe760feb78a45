-- Make a queue, unless it is there.
--
-- KEYS hash=:Q names
-- ARGV name vt delay maxsize
--
--   reply 1: its attributes are these; 0: it was there, and nothing has changed
--
-- A crash before: nothing has happened.  After: it is there, and listed.

-- include layout

local new = call('HEXISTS', hash, 'vt') == 0 and 1 or 0
need_create(hash)
create(hash, names, name, vt, delay, maxsize)
return new
