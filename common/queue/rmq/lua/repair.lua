-- Release locks whose holder is nowhere, or begin or end a search for late messages.
--
--   KEYS  the queue's (see lib/place.lua)
--   ARGV  'free', '1' to change nothing, then for each lock: its field, its value ('' if
--           messages are in line while nobody holds the group).  A lock that has another
--           value now is left alone; see census.c
--         'begin': a census that takes late messages away notes the bounds of all others
--           anew; those of before stay in E and T
--         'end': it has seen all messages
--   reply 'free': how many were released; else 1
--
-- At most 200 locks in one step.
-- A crash before: nothing has happened.  After: what was released is free, and the next
-- of its group is claimable, or waits for its time.

-- include place

local q, dry, released = queue_keys(1), ARGV[2] == '1', 0

if not dry then
  need(q.locks, 'HEXISTS')
  need_leave(q)
  call('ZREM', q.delayed, '')
end
if ARGV[1] == 'begin' then
  for now_known, before in pairs({ e = 'E', t = 'T' }) do
    note_bound(q, before, tonumber(call('HGET', q.locks, now_known) or nil))
    call('HDEL', q.locks, now_known)
  end
  return 1
elseif ARGV[1] == 'end' then
  call('HDEL', q.locks, 'E', 'T')
  return 1
end
for i = 3, #ARGV, 2 do
  if (call('HGET', q.locks, ARGV[i]) or '') == ARGV[i + 1] then
    released = released + 1
    if not dry and ARGV[i]:sub(1, 1) == 'g' then
      begin_turn(q, turn_of(q, ARGV[i]:sub(2)))
    elseif not dry then
      call('HDEL', q.locks, ARGV[i])
    end
  end
end
return released
