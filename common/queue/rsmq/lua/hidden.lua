-- Go on counting hidden messages.
--
--   KEYS  the queue's (see lib/layout.lua); then what connections hold whose
--         messages are not counted
--   ARGV  score and id of the message that the walk came to last ('' at its
--         beginning), how many to look at
--   reply {how many wait; how many are in somebody's hands; the score of the
--         first that waits, or ''; how many follow; score and id of the last,
--         or ''; how many can be received}
--
-- Changes nothing.

-- include layout
-- include walk

local q = queue_keys(1)
local ready = visible(q)
local at = math.max(past(q, ARGV[1], ARGV[2]), ready)
local reply = { count_hidden(q, at, tonumber(ARGV[3]), held_from(q, 5)) }
reply[7] = ready
return reply
