-- Ack messages among the oldest of an unacked list: those of a window, which ends
-- with the oldest.
--
--   KEYS  the queue's (see lib/place.lua), if some hold a key or a group; unacked
--   ARGV  how many the window has, the oldest of them, the newest of them; and
--         if not all are acked, either 'keep' and the places of the others,
--         or 32 bytes that no element has and the places of the acked ones.
--         The oldest has place 1; greater places come first, and the newest
--         is acked
--   reply 1, or 0 and nothing done when these are not where they are expected
--         to be
--
-- No message may be equal to another element of the list: then the places of
-- the oldest and the newest say what is between them.
--
-- A crash before: all are unacked.  After: those that are acked are gone, what
-- they held is free, the next of their groups have their turn, and the others
-- are as they were, in the same order.

-- include rights

local call, unacked, window = redis.call, KEYS[7] or KEYS[1], tonumber(ARGV[1])

if call('LINDEX', unacked, -1) ~= ARGV[2]
    or call('LINDEX', unacked, -window) ~= ARGV[3] then
  return 0
end

-- The others of the window, the newest first.  What stands side by side is read together.
local function read_others()
  local others, i = {}, 5
  while ARGV[i] do
    local first = i
    while ARGV[i + 1] and ARGV[i] - ARGV[i + 1] == 1 do
      i = i + 1
    end
    local some = first == i and { call('LINDEX', unacked, -ARGV[i]) }
      or call('LRANGE', unacked, -ARGV[first], -ARGV[i])
    for k = 1, #some do
      others[#others + 1] = some[k]
    end
    i = i + 1
  end
  return others
end

-- A refusal changes nothing: servers before Redis 7 refuse the first LSET or RPUSH.
local function ack()
  local mark = ARGV[4]
  if not mark then
    call('LTRIM', unacked, 0, -window - 1)
    return
  end
  if mark == 'keep' then
    need(unacked, 'RPUSH')
  else
    need(unacked, 'LSET', 'LREM')
  end
  -- Changes nothing and needs no memory; see claim.lua.
  call('LTRIM', unacked, 0, -1)
  if mark ~= 'keep' then
    for i = 5, #ARGV do
      call('LSET', unacked, -ARGV[i], mark)
    end
    call('LREM', unacked, 4 - #ARGV, mark)
    return
  end
  local others = read_others()
  call('RPUSH', unacked, '')
  call('LTRIM', unacked, 0, -window - 2)
  call('RPUSH', unacked, unpack(others))
end

-- Most need no more, and take less time than it takes to define what is below.
if not KEYS[7] then
  ack()
  return 1
end

-- include leaving

local q = queue_keys(1)
local all, listed, acked = call('LRANGE', unacked, -window, -1), {}, {}
for i = 5, #ARGV do
  listed[ARGV[i] + 0] = true
end
for place = 1, window do
  if not ARGV[4] or (listed[place] or false) == (ARGV[4] ~= 'keep') then
    acked[#acked + 1] = all[window + 1 - place]
  end
end
need_leave(q)
check_types(q)
-- A removal first: it needs no memory; see claim.lua.
ack()

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
  local v = turn and turn.v
  -- One that has no wish but to be the next.
  if turn and turn.member and v.due <= now and not v.tick and v.priority == 0 then
    local n = #ready + 1
    taken[2 * n - 1], taken[2 * n] = lines[i], held_by(v.id or '')
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
