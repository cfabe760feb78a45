-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Remove connections from the holders and the slots of a queue that are dead, and so listed
-- no more.
--
-- KEYS holders slots connections
--
--   reply 1
--
-- A crash before or after: the rest is removed by the next cleaner.

local call = redis.call

-- include holders

forget_dead(holders, connections)
forget_dead(slots, connections)
return 1
