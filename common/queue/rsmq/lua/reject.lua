-- Reject messages that no connection holds.
--
-- KEYS q:PLACES | to:PLACES names
-- ARGV to_name (id runs extra)...
--
--   to     the queue of rejected messages
--   runs   number of receives that the sweep found
--   extra  further headers
--   reply  for each message 1, or 0 if it was received or deleted meanwhile
--
-- A crash before: nothing has happened.  After: each message is in its new place only.

-- include layout
-- include walk
-- include moves

local reply = {}

be_sure(q, to, true)
create_as(q, to, names, to_name)
for i = first_id, #ARGV, each_id do
  local id, runs, extra = unpack(ARGV, i, i + each_id - 1)
  local m = read(q, { id })[1]
  local score = tonumber(call('ZSCORE', q.z, m.id) or nil)
  local idle = score and (score <= now or not taken(q, { m.id })[1])
  m.extra = extra
  reply[#reply + 1] = m.body and idle and m.runs == tonumber(runs)
    and hand_over(q, to, m, 0) and 1 or 0
end
return reply
