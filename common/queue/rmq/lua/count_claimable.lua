-- How many messages of a queue could be claimed now, or have been.
--
-- KEYS q:PLACES unacked...
--
--   reply how many
--
-- Those in line for their group follow when another one ends.  Changes nothing.

-- include basics

local held = 0
-- Of thousands of connections, nearly all hold nothing.
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
