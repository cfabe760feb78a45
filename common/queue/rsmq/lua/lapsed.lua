-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Undo a receive without a run, if the lease of a live consumer is over, as after a step of
-- the server's clock.
--
-- KEYS q:PLACES
-- ARGV id receives
--
--   receives  how often the message had been received when it was the consumer's
--   reply     1; 0 and nothing done: the message has been received since, or waits for a time
--
-- A crash before: the receive counts.  After: the receive does not count.

-- include layout

local score = tonumber(call('ZSCORE', q.z, id) or nil)

if not score or score > now or call('HGET', q.h, id .. ':rc') ~= receives then
  return 0
end
-- ZREM of a missing member needs no memory; see claim.lua of rmq.
call('ZREM', q.z, '\0')
put_back(q, id)
return 1
