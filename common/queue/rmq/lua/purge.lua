-- Remove all messages at one place, if nothing depends on them.
--
--   KEYS  the queue's (see lib/place.lua), rejected
--   ARGV  'ready', 'delayed' or 'rejected'
--   reply how many there were; or -1, and nothing is done, when there are keys
--         or groups to be released, or results to be sent
--
-- A crash before: all are there.  After: none is.  Their memory is freed in
-- the background.

local ready, priority, delayed, locks, _, results, rejected = unpack(KEYS)
local call = redis.call
local n, gone = 0, {}
if ARGV[1] == 'ready' then
  n, gone = call('LLEN', ready) + call('ZCARD', priority), { ready, priority }
elseif ARGV[1] == 'delayed' then
  n, gone = call('ZCARD', delayed), { delayed }
else
  n, gone = call('LLEN', rejected), { rejected }
end
if n > 0 and ARGV[1] ~= 'rejected' and call('EXISTS', locks, results) > 0 then
  return -1
end
call('UNLINK', unpack(gone))
return n
