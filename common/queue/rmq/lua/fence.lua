-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- End the lease of a connection whose process has ended; not on a cluster, where the keys are in
-- two slots.
--
-- KEYS heartbeat=* info=*
-- ARGV process
--
--   process  as the cleaner has read it in the info
--   reply    1, or 0 when the info names another process, or none
--
-- A crash before: the lease lasts.  After: the connection is dead, and any cleaner takes its
-- messages; its claims find no heartbeat.

if redis.call('HGET', info, 'process') ~= process then
  return 0
end
redis.call('DEL', heartbeat)
return 1
