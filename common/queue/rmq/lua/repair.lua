-- Put right what a queue's locks say.
--
--   KEYS  the queue's (see lib/place.lua)
--   ARGV  'free', '1' to change nothing, then for each lock whose holder is
--           nowhere: its field, its value.  One that has another value now is
--           left alone; see repair.c
--         'lines', '1' to change nothing, a score: groups from there on (''
--           the first) in which messages stand in line while nobody holds it
--         'begin': a walk for messages that are too late begins
--         'end', the earliest expiry that it has seen, and the lowest last tick
--           ('' none)
--   reply 'free': how many were let go of; 'lines': {how many groups have their
--         turn, where to go on or '' at the end}; else 1
--
-- At most 200 groups in one step; so should there be locks.
-- A crash before: nothing has happened.  After: what was let go of is free, and
-- the next of its group is claimable, or waits for its time.

-- include place

local q, dry = queue_keys(1), ARGV[2] == '1'

local function lines()
  local n, low = 0, ARGV[3] == '' and IN_LINE or '(' .. ARGV[3]
  for _ = 1, 200 do
    local score = call('ZRANGEBYSCORE', q.delayed, low, '+inf',
      'WITHSCORES', 'LIMIT', 0, 1)[2]
    if not score then
      return { n, '' }
    end
    score = string.format('%.0f', score)
    local line = string.format('%06x%07x', math.floor((score - IN_LINE) / 2 ^ 28),
      (score - IN_LINE) % 2 ^ 28)
    if call('HEXISTS', q.locks, 'g' .. line) == 0 then
      n = n + 1
      if not dry then
        begin_turn(q, turn_of(q, line))
      end
    end
    low = '(' .. score
  end
  return { n, low:sub(2) }
end

-- The lower one of what a field says, and another number.  A walk does not see members
-- that are added meanwhile.
local function set_bound(field, from, other)
  local least = math.min(tonumber(call('HGET', q.locks, from) or nil) or math.huge,
    tonumber(other or nil) or math.huge)
  if least < math.huge then
    call('HSET', q.locks, field, string.format('%.0f', least))
  else
    call('HDEL', q.locks, field)
  end
end

if not dry then
  need(q.locks, 'HEXISTS')
  need_leave(q)
  call('ZREM', q.delayed, '')
end
if ARGV[1] == 'free' then
  local n = 0
  for i = 3, #ARGV, 2 do
    if call('HGET', q.locks, ARGV[i]) == ARGV[i + 1] then
      n = n + 1
      if not dry and ARGV[i]:sub(1, 1) == 'g' then
        begin_turn(q, turn_of(q, ARGV[i]:sub(2)))
      elseif not dry then
        call('HDEL', q.locks, ARGV[i])
      end
    end
  end
  return n
elseif ARGV[1] == 'lines' then
  return lines()
elseif ARGV[1] == 'begin' then
  set_bound('E', 'e', call('HGET', q.locks, 'E'))
  set_bound('T', 't', call('HGET', q.locks, 'T'))
  call('HDEL', q.locks, 'e', 't')
else
  set_bound('e', 'e', ARGV[2])
  set_bound('t', 't', ARGV[3])
  call('HDEL', q.locks, 'E', 'T')
end
return 1
