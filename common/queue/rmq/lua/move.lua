-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Move messages of a place to a queue, to be claimed, or drop them: the next ones, unseen, or
-- messages that a walk has chosen.
--
-- KEYS q:PLACES | to:PLACES queues=* [list=*] [heartbeat=*] [none=*]
-- ARGV from how max bytes [cursor] [anchor] member...
-- REPLY moved dealt cursor anchor brought
-- NEEDS RPUSH HGET HMGET HSET HDEL ZRANGEBYSCORE GET ZADD LPUSH ZREM
--
--   to         the target; to drop messages, the same queue
--   queues     rmq::queues, or outgoing
--   list       if from is 'rejected' or 'unacked', that list
--   heartbeat  if from is 'unacked', that of the connection, on a cluster its lease of the queue
--   from       the place (see lib/source.lua); behind it ' priority=N', ' due=MS' or both, if
--              chosen messages change so; in line for their group or a batch, they stay there
--   max        messages
--   bytes      about how many
--   cursor     for chosen messages, where the walk is, and its anchor (see walk.lua)
--   member     a chosen message, in a set its member
--   how   'move': claimable again.  Attempts of rejected messages begin anew.  Times and first
--         ticks of delayed messages are cleared; messages in line for their group stay there,
--         unless they go to another queue or are chosen.  Unacked messages go to the front,
--         the newest first, so that their order stays, unless they are chosen.
--         'move ID FROM QUEUE': to another queue of a cluster, by way of outgoing; `to` has
--         the keys of the source then
--         A message that another one has replaced goes to no other queue, but is dropped.
--         'drop': removed; 'purge': the same, all at once if nothing depends on the messages
--         'home': only bring back messages that were brought aside; anchor: the first of them
--   reply {messages moved; with max 0, messages there; -1: the connection is alive}; for chosen
--         messages also how many of them this step dealt with, the cursor, the anchor, or 0 if
--         that is the same, and the first message brought aside, or ''; for 'home' how many
--         messages the list has
--
-- Chosen messages leave a list all at once: each place gets the same mark, and one LREM removes
-- the marks, passing the messages that stay behind the walk.  Other programs see each message
-- in its place.  Only when MANY stay, steps bring those to the left end from then on, where
-- other programs see them until the walk has come around; new messages get between.
--
-- A crash before: all messages are where they were.  After: each is in its new place only, or
-- in outgoing, from where a cleaner brings it to the other queue.

-- include json
-- include headers
-- include place
-- include moves
-- include source

local priority, due = from:match(' priority=(%S+)'), from:match(' due=(%d+)')
local changes, due_ms = priority or due, tonumber(due)
from = from:match('^%a+')
how, max = prepare_departure(how, queues), tonumber(max)
local room, work = tonumber(bytes), 1000
local w = cursor and parse_walk(cursor, anchor)
local moves, same = how == 'move', not leaves(q, to)
local front = from == 'unacked' and not w
-- A message with options takes the time of this many others.
local WEIGHT = 13
-- LREM takes 25 ns or more for each message that it passes.
local MANY = from == 'ready' and 100000 or 10000

local all = sources(moves and same and not w and from == 'delayed' and 'timed'
  or from, q, list)

local function count_all()
  local n = 0
  for i = 1, #all do
    n = n + count(all[i])
  end
  return n
end

-- Brings at most n messages from the right end of a list to the left one, until `last` is at
-- the right end.
local function bring(key, n, last)
  local moved = 0
  while moved < n and room > 0 and call('LINDEX', key, -1) ~= last do
    room = room - #call('LMOVE', key, key, 'RIGHT', 'LEFT')
    moved = moved + 1
  end
  return moved
end

if front and call('PTTL', heartbeat) > 0 then
  return { -1 }
elseif max == 0 then
  return { count_all() }
elseif how == 'home' then
  local key = list or q.ready
  local n = call('LLEN', key)
  -- LTRIM changes nothing and needs no memory; see claim.lua.
  call('LTRIM', key, 0, -1)
  return { bring(key, math.min(n, max), anchor), n }
end

-- A rejected message holds no locks, though another message with its id may.
local holds = from ~= 'rejected'
-- Whether no lock and no wait for a result depends on the messages.
local free = not moves
  and not (holds and call('EXISTS', q.locks, q.results) > 0)
local sure = false
-- The messages that have left; their groups have their next turns once all have left.
local gone = {}

-- The end that a rejected message has in the counts of its batch.
local function how_ended(element)
  local why = element:match('"Mq%-Error":%["(%a+)')
  return (why == 'expired' or why == 'stale') and 'expired' or 'rejected'
end

-- A message with its new priority and time; one without a header keeps none where it can.
local function changed(element)
  if element:sub(1, 5) ~= '\255\0\190\190J' then
    if (not priority or priority == '0') and not (due and departure) then
      return element
    end
    element = '\255\0\190\190J{}\n' .. element
  end
  if priority then
    element = with_header(element, 'Mq-Priority', priority ~= '0' and { priority } or nil)
  end
  return due and with_header(element, 'Mq-Due', { due }) or element
end

-- Changes a member of delayed at its place, unless it gets another one; returns the member to
-- remove then, or nil.
local function change_there(member, element, w)
  local score = call('ZSCORE', q.delayed, member)
  if due and tonumber(score) < FOLLOWS then
    return nil
  end
  if due and w then
    note_due(q, w, due_ms)
  end
  if member:sub(33) == element then
    return ''
  end
  call('ZADD', q.delayed, score, member:sub(1, 32) .. element)
  return member
end

-- Moves messages of a part, from the first on, while there is work left; returns how many.
-- members: in delayed, those of chosen ones, or what to remove in their place.
local function move(part, members)
  local headed, n = departure or changes, 0
  for i = 1, #part do
    room = room - #part[i]
    headed = headed or part[i]:byte() == 255
  end
  if free or not headed then
    work = work - #part
    if moves then
      call(front and 'RPUSH' or 'LPUSH', to.ready, unpack(part))
    end
    return #part
  end
  local new, asks, any = {}, {}, false
  while n < #part and work > 0 do
    n = n + 1
    new[n] = holds and part[n] or anew(part[n], 'Mq-Attempt')
    new[n] = changes and changed(new[n]) or new[n]
    asks[n] = options(new[n]) or false
    any = any or asks[n] or changes
    if asks[n] and asks[n].batch then
      in_batches().check(q, asks[n])
      asks[n].returned = not holds and moves and same and how_ended(part[n])
    end
    if asks[n] and asks[n].key and holds and moves and not same then
      asks[n].newer = newer_than(q, asks[n])
    end
    work = work - (asks[n] and WEIGHT or 1)
  end
  if any and not sure then
    be_sure(q, to, moves)
    sure = true
  end
  for i = 1, moves and n or 0 do
    local element, w = new[i], asks[i]
    local there = changes and same and from == 'delayed' and change_there(members[i], element, w)
    if there then
      members[i] = there
    elseif not (w and w.newer) then
      if from == 'delayed' and not departure and not (due and due_ms > now) then
        element = at_once(q, element, w)
      elseif changes and w and same and holds then
        w.after = nil
      end
      arrive(to, element, w, same and holds, front, due_ms)
    end
  end
  arrive_plain(to, front)
  for i = 1, holds and not (moves and same) and n or 0 do
    gone[#gone + 1] = asks[i]
  end
  return n
end

-- The next n of a source.
local function fetch(s, n)
  if not s.low then
    return front and call('LRANGE', s.key, 0, n - 1) or list_slice(s.key, 0, n)
  end
  s.members = call('ZRANGEBYSCORE', s.key, s.low, s.high, 'LIMIT', 0, n)
  local part = {}
  for i = 1, #s.members do
    part[i] = s.members[i]:sub(33)
  end
  return part
end

-- Removes the first n messages of the last fetch().
local function cut(s, n)
  if s.low then
    call('ZREM', s.key, unpack(s.members, 1, n))
  else
    call('LTRIM', s.key, front and n or 0, front and -1 or -n - 1)
  end
end

local function move_next(s, most)
  local moved, size = 0, 1
  while moved < most and work > 0 and room > 0 do
    local part = fetch(s, math.min(size, most - moved))
    if #part == 0 then
      break
    end
    local n = move(part)
    cut(s, n)
    moved = moved + n
    -- The next messages may be long.
    size = math.min(2 * size, 64)
  end
  return moved
end

-- The chosen messages that are there still: their elements, their numbers among the chosen
-- ones, and their members in a set, or places in a list.
local function find_chosen(s)
  local found, numbers, places, next_equal, first = {}, {}, {}, {}, {}

  local function add(i, element, place)
    found[#found + 1], numbers[#numbers + 1] = element, i
    places[#places + 1] = place
  end

  if s.low then
    for i = first_member, #ARGV do
      if call('ZSCORE', s.key, ARGV[i]) then
        add(i, ARGV[i]:sub(33), ARGV[i])
      end
    end
    return found, numbers, places
  end
  for i = #ARGV, first_member, -1 do
    next_equal[i], first[ARGV[i]] = first[ARGV[i]], i
  end
  local span = math.min(w.span, w.from)
  local slice = span > 0 and list_slice(s.key, w.from - span, span) or {}
  for i = 1, #slice do
    local number = first[slice[i]]
    if number then
      first[slice[i]] = next_equal[number]
      add(number, slice[i], span - w.from - i)
    end
  end
  return found, numbers, places
end

-- Moves chosen messages; returns how many, and how many of the chosen ones it dealt with.
local function move_chosen(s)
  local found, numbers, places = find_chosen(s)
  if #found == 0 then
    return 0, #ARGV - first_member + 1
  end
  local mark = redis.sha1hex(now_us .. s.key)
  if not s.low then
    need(s.key, 'LREM')
    -- Before Redis 7, need() does nothing; these commands change nothing.
    call('LREM', q.results .. mark, 1, mark)
    call('LSET', s.key, places[1], found[1])
  end
  -- Each step searches the slice again, so it moves more than a step of unseen messages.
  work = 2 * work
  local n = move(found, places)
  if s.low then
    call('ZREM', s.key, unpack(places, 1, n))
  else
    for i = 1, n do
      call('LSET', s.key, places[i], mark)
    end
    call('LREM', s.key, -n, mark)
    local last = places[n] == -w.from
    w.from, w.span = w.from - n, w.span - n
    w.anchor = not last and w.anchor
      or w.from > 0 and call('LINDEX', s.key, -w.from) or ''
  end
  return n, n == #found and #ARGV - first_member + 1 or numbers[n] - first_member + 1
end

-- These commands change nothing and need no memory; see claim.lua.  Without the right to
-- remove, nothing is pushed.
for i = 1, #all do
  if all[i].low then
    call('ZREM', all[i].key, '')
  else
    call('LTRIM', all[i].key, 0, -1)
  end
end

local moved, reply = 0, {}
if how == 'purge' and free and not w then
  moved = count_all()
  for i = 1, #all do
    call('UNLINK', all[i].key)
  end
elseif w then
  local s, first, number = all[w.part], '', 0
  w.from = find_walk(s, w)
  local stay = w.from - w.span
  if not s.low and from ~= 'unacked'
      and (stay >= MANY or w.aside == 1 and stay >= 1000) then
    first = call('LINDEX', s.key, -1)
    w.from, w.aside = w.from - bring(s.key, math.min(stay, 1000)), 1
  else
    moved, number = move_chosen(s)
  end
  reply = { 0, number, print_walk(w), w.anchor ~= anchor and w.anchor or 0, first }
else
  for i = 1, #all do
    moved = moved + move_next(all[i], max - moved)
  end
end
reply[MOVED] = moved
if moved > 0 and moves then
  make_known(to, queues)
end
for i = 1, #gone do
  local newer = gone[i] and gone[i].newer
  local drops = newer or not moves
  leave(q, gone[i], (from ~= 'unacked' or drops) and 'vanish' or 'done',
    drops and 'purged' or 'pushed')
  if drops then
    tell(q, gone[i], 'purged', newer and 'replaced by ' .. newer)
  end
end
return reply
