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

local q = queue_keys(1)
local to, queues, held, heartbeat = queue_keys(7)
local from, how = ARGV[1], prepare_departure(ARGV[2], queues)
local max, room, work = tonumber(ARGV[3]), tonumber(ARGV[4]), 1000
local same, first = not leaves(q, to), from == 'unacked'
-- A message that asks for something takes the time of this many others.
local WEIGHT = 12

local function list(key)
  return {
    count = function()
      return call('LLEN', key)
    end,
    next = function(n)
      if first then
        return call('LRANGE', key, 0, n - 1)
      end
      local part, turned = call('LRANGE', key, -n, -1), {}
      for i = 1, #part do
        turned[i] = part[#part - i + 1]
      end
      return turned
    end,
    cut = function(n)
      call('LTRIM', key, first and n or 0, first and -1 or -n - 1)
    end
  }
end

local function set(key, low, high)
  local members
  return {
    count = function()
      return call('ZCOUNT', key, low, high)
    end,
    next = function(n)
      if how == 'last' then
        members = call('ZREVRANGEBYSCORE', key, high, low, 'LIMIT', 0, n)
      else
        members = call('ZRANGEBYSCORE', key, low, high, 'LIMIT', 0, n)
      end
      local part = {}
      for i = 1, #members do
        part[i] = members[i]:sub(33)
      end
      return part
    end,
    cut = function(n)
      if members then
        call('ZREM', key, unpack(members))
      else
        call('ZREMRANGEBYRANK', key, 0, n - 1)
      end
    end
  }
end

local source
if from == 'ready' then
  source = { set(q.priority, '-inf', '(0'), list(q.ready),
    set(q.priority, '(0', '+inf') }
elseif from == 'delayed' then
  source = { set(q.delayed, '-inf',
    how == 'move' and same and string.format('(%.0f', IN_LINE) or '+inf') }
else
  source = { list(held) }
end

if from == 'unacked' and call('PTTL', heartbeat) > 0 then
  return -1
elseif max == 0 then
  local n = 0
  for i = 1, #source do
    n = n + source[i].count()
  end
  return n
end

local moved, ready = 0, false
-- The messages that have left.  No other message has a turn before all have left.
local gone = {}

local function prepare()
  if not ready then
    be_sure(q, to, how == 'move')
    ready = true
  end
end

local function move(s, part)
  local new = part
  if from == 'rejected' then
    new = {}
    for i = 1, #part do
      new[i] = anew(part[i], 'Mq-Attempt')
    end
  end
  local w, asking = all_options(new)
  if asking > 0 then
    prepare()
  end
  for i = 1, #new do
    local element = new[i]
    if from == 'delayed' and not departure then
      element = at_once(to, element, w[i])
    end
    arrive(to, element, w[i], same and from ~= 'rejected', first)
  end
  arrive_plain(to, first)
  s.cut(#part)
  for i = 1, same and 0 or #w do
    gone[#gone + 1] = w[i]
  end
  return asking
end

local function remove(s, part)
  local w, asking = all_options(part)
  if asking > 0 then
    prepare()
  end
  s.cut(#part)
  for i = 1, #w do
    gone[#gone + 1] = w[i]
  end
  return asking
end

-- Most have no header, and so ask for nothing.
local function move_plain(s, part)
  if how == 'move' then
    call(first and 'RPUSH' or 'LPUSH', to.ready, unpack(part))
  end
  s.cut(#part)
  return 0
end

-- How many bytes they are, and whether any has a header.
local function measure(part)
  local bytes, byte, headed = 0, string.byte, false
  for i = 1, #part do
    local element = part[i]
    bytes = bytes + #element
    headed = headed or byte(element) == 255
  end
  return bytes, headed
end

local function take(s)
  local size = 1
  while moved < max and work > 0 and room > 0 do
    local part = s.next(math.min(size, max - moved))
    if #part == 0 then
      return
    end
    local bytes, headed = measure(part)
    local go = not headed and not departure and move_plain
      or how == 'move' and move or remove
    local asking = go(s, part)
    moved, work = moved + #part, work - #part - asking * WEIGHT
    room = room - bytes
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
local free = how ~= 'move' and not (holds and depends(q))
for i = 1, #source do
  if free then
    local n = math.min(max - moved, source[i].count())
    if n > 0 then
      source[i].cut(n)
      moved = moved + n
    end
  else
    take(source[i])
  end
end
if moved > 0 and how == 'move' then
  make_known(to, queues)
end
if holds and how == 'move' then
  for i = 1, #gone do
    leave(q, gone[i], from == 'delayed' and 'vanish' or 'done')
  end
elseif holds then
  drop(q, gone, 'vanish')
end
return moved
