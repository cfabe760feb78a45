-- Reject messages in nobody's hands.
--
--   KEYS  those of their queue (see lib/layout.lua), and of that of the rejected
--         ones, the set of names
--   ARGV  name of the latter, then of each message its id, how often it was
--         received, and its new further headers
--   reply of each 1, or 0 if somebody has received or deleted it meanwhile
--
-- A crash before: nothing has happened.  After: each is in its new place only.

-- include layout
-- include walk
-- include moves

local q, reply = queue_keys(1), {}
local to, names = queue_keys(5)

be_sure(q, to, true)
create_as(q, to, names, ARGV[1])
for i = 2, #ARGV, 3 do
  local m = read(q, { ARGV[i] })[1]
  local score = tonumber(call('ZSCORE', q.z, m.id) or nil)
  local idle = score and (score <= now or not taken(q, { m.id })[1])
  m.extra = ARGV[i + 2]
  reply[#reply + 1] = m.body and idle and m.runs == tonumber(ARGV[i + 1])
    and hand_over(q, to, m, 0) and 1 or 0
end
return reply
