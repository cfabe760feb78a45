-- What a connection holds of a queue: those that nobody else has received or deleted since.
--
-- KEYS q:PLACES held
-- ARGV [wanted]
--
--   wanted  'messages', 'heads' for the same without bodies, or nothing
--   reply the ids; or 0, as nobody counts how many there ever were, then the messages as
--         they were claimed, the newest first
--
-- Changes nothing.

-- include layout

local ids, reply = held_by(q, held), { 0 }

if not wanted then
  return ids
end
table.sort(ids, function(a, b)
  return a > b
end)
for part in parts(ids, 100) do
  for _, m in ipairs(read(q, part)) do
    if m.body then
      local body = wanted == 'heads' and '' or m.body
      reply[#reply + 1] = element(m.id, body, m.runs - 1, m.extra)
    end
  end
end
return reply
