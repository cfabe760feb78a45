-- The messages of a queue that a connection holds.
--
--   KEYS  the queue's (see lib/layout.lua), what the connection holds
--   reply 0, as nobody counts how many there ever were; then the messages as
--         they were claimed, the newest first
--
-- Changes nothing.

-- include layout

local q, held = queue_keys(1)
local ids = held_by(q, held)
table.sort(ids, function(a, b)
  return a > b
end)

local reply = { 0 }
for part in parts(ids, 100) do
  for _, m in ipairs(read(q, part)) do
    if m.body then
      reply[#reply + 1] = element(m.id, m.body, m.runs - 1, m.extra)
    end
  end
end
return reply
