-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- The messages of a queue that a connection holds: received by nobody else since, and not
-- deleted.
--
-- KEYS q:PLACES held
-- ARGV [wanted]
--
--   wanted  'messages', 'heads' (messages without bodies), or nothing
--   reply   the ids; if wanted, 0 in place of a count of all claims, and the messages as they
--           were claimed, the newest first
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
