-- Look whether queues need a claim by a consumer that is idle there; see rmq's
-- look.lua.
--
--   KEYS  of each queue: its messages, paused, watch, idle
--   ARGV  name in the consumer's channel, '1' to check that others know it
--   reply of each queue: 0, a claim is needed; else how many are idle there, or -1
--         unless that was checked
--
-- Changes nothing.

-- include looking

return look(4, function(z, paused)
  return call('ZCOUNT', z, '-inf', now()) > 0 and call('EXISTS', paused) == 0
end)
