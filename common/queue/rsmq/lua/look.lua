-- Look whether queues need a claim by a consumer that is idle there.  Changes nothing.
--
--   KEYS  of each queue: its messages, paused, watch, idle
--   ARGV  and reply: as rmq's

-- include looking

return look(4, function(z, paused)
  return call('ZCOUNT', z, '-inf', now()) > 0 and call('EXISTS', paused) == 0
end)
