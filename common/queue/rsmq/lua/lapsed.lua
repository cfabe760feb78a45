-- Take back a receive that has not ended in a run: the lease of its consumer is
-- over although that is alive, as after a step of the server's clock.
--
-- KEYS q:PLACES
-- ARGV id receives
--
--   receives  how often it had been received when it was ours
--   reply 1, or 0 and nothing done when it is not as it was then: somebody has
--         received it since, or it waits for a time
--
-- A crash before: the receive counts.  After: it is as if nobody had received
-- the message.

-- include layout

local score = tonumber(call('ZSCORE', q.z, id) or nil)

if not score or score > now or call('HGET', q.h, id .. ':rc') ~= receives then
  return 0
end
need_put_back(q)
-- A write that needs no memory; see claim.lua.
call('ZREM', q.z, '\0')
put_back(q, id)
return 1
