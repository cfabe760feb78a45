-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Look whether queues need a claim by a consumer that is idle there.  Changes nothing.
--
-- KEYS (z paused watch idle)...
-- ARGV [name] [checked]
--
--   reply, name, checked  as in look.lua of rmq

-- include looking

return look(each_z, function(z, paused)
  return call('ZCOUNT', z, '-inf', now()) > 0 and call('EXISTS', paused) == 0
end)
