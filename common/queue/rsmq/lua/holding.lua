-- What a connection holds of a queue.
--
--   KEYS  the queue's (see lib/layout.lua), what the connection holds
--   reply the ids of those that nobody else has received or deleted since
--
-- Changes nothing.

-- include layout

local q, held = queue_keys(1)
return held_by(q, held)
