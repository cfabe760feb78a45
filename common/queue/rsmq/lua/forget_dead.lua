-- Remove connections from the holders of a queue that are dead, and so listed no more.
--
-- KEYS holders connections
--
--   reply 1
--
-- A crash before or after: the rest is removed by the next cleaner.

local call = redis.call

-- include holders

forget_dead(holders, connections)
return 1
