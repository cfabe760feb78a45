-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Number of messages of a queue that can be claimed now, or are unacked.
--
-- KEYS q:PLACES unacked...
--
--   reply the number
--
-- Messages in line for their group do not count.  Changes nothing.

-- include basics

local held = 0
-- Nearly all of thousands of connections hold nothing, so EXISTS sorts out most.
for first = first_unacked, #KEYS, 1000 do
  local last = math.min(first + 999, #KEYS)
  if call('EXISTS', unpack(KEYS, first, last)) > 0 then
    for _, key in ipairs({ unpack(KEYS, first, last) }) do
      held = held + call('LLEN', key)
    end
  end
end
return held + call('LLEN', q.ready) + call('ZCARD', q.priority)
  + call('ZCOUNT', q.delayed, '-inf', now)
  + call('ZCOUNT', q.delayed, AT_TICK, AT_TICK + clock(q))
