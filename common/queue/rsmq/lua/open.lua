-- Make a queue, unless it is there.
--
--   KEYS  its hash, the set of all names
--   ARGV  name, vt, delay, maxsize
--   reply 1: its attributes are these; 0: it was there, and nothing has changed
--
-- A crash before: nothing has happened.  After: it is there, and listed.

-- include layout

local hash, queues = unpack(KEYS)
local new = call('HEXISTS', hash, 'vt') == 0 and 1 or 0
need_create(hash)
create(hash, queues, ARGV[1], ARGV[2], ARGV[3], ARGV[4])
return new
