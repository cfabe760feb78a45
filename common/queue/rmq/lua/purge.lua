-- Remove all messages at one place, if nothing depends on them.
--
--   KEYS  the queue's (see lib/place.lua), rejected
--   ARGV  'ready', 'delayed' or 'rejected'
--   reply how many there were; or -1, and nothing is done, when there are keys
--         or groups to be released, or results to be sent
--
-- A crash before: all are there.  After: none is.  Their memory is freed in
-- the background.

local call = redis.call
local n, gone = 0, {}
if ARGV[1] == 'ready' then
  n, gone = call('LLEN', KEYS[1]) + call('ZCARD', KEYS[2]), { KEYS[1], KEYS[2] }
elseif ARGV[1] == 'delayed' then
  n, gone = call('ZCARD', KEYS[3]), { KEYS[3] }
else
  n, gone = call('LLEN', KEYS[7]), { KEYS[7] }
end
if n > 0 and ARGV[1] ~= 'rejected' and call('EXISTS', KEYS[4], KEYS[6]) > 0 then
  return -1
end
call('UNLINK', unpack(gone))
return n
