-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Look whether queues need a claim by a consumer that is idle there; see lib/role.lua.
-- Changes nothing.
--
-- KEYS (ready priority delayed clock paused watch idle)...
-- ARGV [name] [checked]
--
--   name     in the consumer's channel
--   checked  '1': look at other consumers, too
--   reply    for each queue 0, if a claim is needed: no consumer is on watch, or that leaves
--            messages where they are, or (checked) is dead, or the consumer is not in idle;
--            else, checked, number of idle consumers, or -1

-- include looking

local AT_TICK = 2 ^ 50

local function has_due(delayed, clock)
  local tick = tonumber(call('GET', clock)) or 0
  return call('ZRANGEBYSCORE', delayed, '-inf', now(), 'LIMIT', 0, 1)[1]
    or tick > 0 and call('ZRANGEBYSCORE', delayed, AT_TICK, AT_TICK + tick,
      'LIMIT', 0, 1)[1]
end

return look(each_ready, function(ready, priority, delayed, clock, paused)
  return call('EXISTS', ready, priority, delayed) > 0
    and (call('EXISTS', ready, priority) > 0 or has_due(delayed, clock))
    and call('EXISTS', paused) == 0
end)
