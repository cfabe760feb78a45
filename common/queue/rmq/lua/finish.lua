-- Ack messages among the oldest of an unacked list, of which some hold a key
-- or a group.
--
--   KEYS  the queue's (see lib/place.lua), unacked
--   ARGV  see lib/window.lua
--   reply 1, or 0 and nothing done when these are not where they are expected
--         to be
--
-- A crash before: all are unacked.  After: those that are acked are gone, what
-- they held is free, the next of their groups have their turn, and the others
-- are as they were, in the same order.

-- include leaving
-- include window

local q, unacked = queue_keys(1)
if not is_window(unacked) then
  return 0
end
local window, listed, acked = call('LRANGE', unacked, -WINDOW, -1), {}, {}
for i = 5, #ARGV do
  listed[ARGV[i] + 0] = true
end
for place = 1, WINDOW do
  if not ARGV[4] or (listed[place] or false) == (ARGV[4] ~= 'keep') then
    acked[#acked + 1] = window[WINDOW + 1 - place]
  end
end
need_leave(q)
check_types(q)
-- A removal first: it needs no memory; see claim.lua.
ack_window(unacked)

-- Of the groups first, as many as are alike with one command.
local lines, of, keys = {}, {}, {}
for i = 1, #acked do
  local w = options(acked[i])
  if w and w.line then
    lines[#lines + 1], of[#of + 1] = 'g' .. w.line, w
  end
  if w and w.key then
    keys[#keys + 1] = w
  end
end
local holders = lines[1] and call('HMGET', q.locks, unpack(lines)) or {}
local taken, members, ready = {}, {}, {}
for i = 1, #holders do
  local turn = holder(holders[i]) == of[i].id and turn_of(q, of[i].line)
  if turn and goes_to_ready(turn) then
    local n = #ready + 1
    taken[2 * n - 1], taken[2 * n] = lines[i], held_by(turn.v.id or '')
    members[n], ready[n] = turn.member, turn.element
  elseif turn then
    begin_turn(q, turn)
  end
end
if ready[1] then
  call('HSET', q.locks, unpack(taken))
  call('LPUSH', q.ready, unpack(ready))
  call('ZREM', q.delayed, unpack(members))
end
for i = 1, #keys do
  unlock(q, keys[i], 'done')
end
return 1
