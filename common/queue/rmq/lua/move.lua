-- Move the next messages of one place to where they are claimed from, or drop
-- them, unseen.
--
--   KEYS  the keys of their queue, those of the target (the same for what is
--         dropped; see lib/place.lua), rmq::queues, or outgoing; then of
--         rejected ones that list, and of unacked ones that list and the
--         heartbeat of their connection, on a cluster its lease of the queue
--   ARGV  from, how, max messages, about how many bytes
--   from  'ready', the next to be claimed first; 'delayed', the first to fall
--         due first; 'rejected', the oldest first; or 'unacked', the newest
--         first, only of a dead connection
--   how   'move': claimable again.  Attempts of rejected ones begin anew.
--         Delayed ones wait for no time and no tick any more; those in line
--         for their group stay there, unless they go to another queue.
--         Unacked ones go to the front, so that their order stays.
--         'move ID FROM QUEUE': to another queue of a cluster, by way of
--         outgoing; the keys of the target are those of the source then
--         'drop': they are removed
--         'last': the same, delayed ones from the end, where those in line are
--   reply how many; with max 0, how many there are; -1: the connection is alive
--
-- A crash before: all are where they were.  After: each is in its new place
-- only, or in outgoing, from where a cleaner brings it to the other queue.

-- include place
-- include moves
-- include cursor

local q = queue_keys(1)
local to, queues, held, heartbeat = queue_keys(7)
local from, how = ARGV[1], prepare_departure(ARGV[2], queues)
local max, room, work = tonumber(ARGV[3]), tonumber(ARGV[4]), 1000
local moves, same, first = how == 'move', not leaves(q, to), from == 'unacked'
-- A message that asks for something takes the time of this many others.
local WEIGHT = 12

-- What the place has: lists, and of sorted sets what is between two scores.
local source
if from == 'ready' then
  source = { { key = q.priority, low = '-inf', high = '(0' }, { key = q.ready },
    { key = q.priority, low = '(0', high = '+inf' } }
elseif from == 'delayed' then
  source = { { key = q.delayed, low = '-inf',
    high = moves and same and string.format('(%.0f', IN_LINE) or '+inf' } }
else
  source = { { key = held } }
end

local function count(s)
  return s.low and call('ZCOUNT', s.key, s.low, s.high) or call('LLEN', s.key)
end

-- The next n.
local function fetch(s, n)
  if not s.low then
    return first and call('LRANGE', s.key, 0, n - 1) or list_slice(s.key, 0, n)
  elseif how == 'last' then
    s.members = call('ZREVRANGEBYSCORE', s.key, s.high, s.low, 'LIMIT', 0, n)
  else
    s.members = call('ZRANGEBYSCORE', s.key, s.low, s.high, 'LIMIT', 0, n)
  end
  local part = {}
  for i = 1, #s.members do
    part[i] = s.members[i]:sub(33)
  end
  return part
end

-- Removes those that were fetched, or as many from the beginning.
local function cut(s, n)
  if not s.low then
    call('LTRIM', s.key, first and n or 0, first and -1 or -n - 1)
  elseif s.members then
    call('ZREM', s.key, unpack(s.members))
  else
    call('ZREMRANGEBYRANK', s.key, 0, n - 1)
  end
end

if first and call('PTTL', heartbeat) > 0 then
  return -1
elseif max == 0 then
  local n = 0
  for i = 1, #source do
    n = n + count(source[i])
  end
  return n
end

local moved, ready = 0, false
-- The messages that have left.  No other message has a turn before all have left.
local gone = {}

-- Returns how many ask for something.
local function move(s, part)
  local new, w, asking = all_options(part, from == 'rejected')
  if asking > 0 and not ready then
    be_sure(q, to, moves)
    ready = true
  end
  if moves then
    arrive_all(to, new, w, same and from ~= 'rejected', first, from == 'delayed')
  end
  cut(s, #part)
  for i = 1, moves and same and 0 or #w do
    gone[#gone + 1] = w[i]
  end
  return asking
end

-- Most have no header, and so ask for nothing.
local function move_plain(s, part)
  if moves then
    call(first and 'RPUSH' or 'LPUSH', to.ready, unpack(part))
  end
  cut(s, #part)
  return 0
end

local function take(s)
  local size, byte = 1, string.byte
  while moved < max and work > 0 and room > 0 do
    local part = fetch(s, math.min(size, max - moved))
    if #part == 0 then
      return
    end
    local headed = departure
    for i = 1, #part do
      room = room - #part[i]
      headed = headed or byte(part[i]) == 255
    end
    local asking = headed and move(s, part) or move_plain(s, part)
    moved, work = moved + #part, work - #part - asking * WEIGHT
    -- Not more: nobody knows how long the next ones are.
    size = math.min(2 * size, asking > 0 and 8 or 64)
  end
end

-- These commands change nothing and need no memory; see claim.lua.  A message that
-- cannot be removed must not be pushed.
if from == 'delayed' then
  call('ZREM', q.delayed, '')
else
  call('LTRIM', held or q.ready, 0, -1)
  call('ZREM', q.priority, '')
end

-- A rejected message holds nothing, though another one with its id may.
local holds = from ~= 'rejected'
-- Nothing may depend on messages that nobody has run.
local free = not moves
  and not (holds and call('EXISTS', q.locks, q.results) > 0)
for i = 1, #source do
  local n = free and math.min(max - moved, count(source[i]))
  if not free then
    take(source[i])
  elseif n > 0 then
    cut(source[i], n)
    moved = moved + n
  end
end
if moved > 0 and moves then
  make_known(to, queues)
end
if holds then
  let_go(q, gone, (from == 'delayed' or not moves) and 'vanish' or 'done',
    not moves)
end
return moved
