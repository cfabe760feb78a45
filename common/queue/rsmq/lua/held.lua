-- The messages of a queue that a connection holds.
--
--   KEYS  the queue's (see lib/layout.lua), what the connection holds
--   ARGV  'give', to give all of it back, as if nobody had received it; or ''
--   reply 0, as nobody counts how many there ever were; then the messages as
--         they were claimed, the newest first.  With 'give', how many there were
--
-- A crash before: nothing has happened.  After: nothing is held.

-- include layout

local q, held = queue_keys(1), KEYS[5]
local ids = call('HKEYS', held)
table.sort(ids, function(a, b)
  return a > b
end)

if ARGV[1] == 'give' then
  local n = 0
  need_put_back(q)
  need(held, 'DEL', 'ZSCORE')
  for i = 1, #ids do
    if holds(q, held, { ids[i] }) and call('ZSCORE', q.z, ids[i]) then
      put_back(q, ids[i])
      n = n + 1
    end
  end
  call('DEL', held)
  return n
end

local reply = { 0 }
for i = 1, #ids, 100 do
  local list = read(q, { unpack(ids, i, math.min(i + 99, #ids)) })
  for j = 1, #list do
    local m = list[j]
    if m.body and holds(q, held, { m.id }) then
      reply[#reply + 1] = element(m.id, m.body, m.runs - 1, m.extra)
    end
  end
end
return reply
