-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Ack messages of a window of an unacked list, which ends with the oldest message.
--
-- KEYS unacked [q:PLACES]
-- ARGV window oldest newest [mark] place...
-- NEEDS HGET HMGET HSET HDEL ZRANGEBYSCORE GET ZADD LPUSH ZREM
--
--   q       if a message may hold a key or a group
--   window  number of messages; the newest is acked
--   mark    if not all are acked: 'keep', and places of messages that stay; or 32 bytes that
--           are no element, and places of acked messages
--   place   1 is the oldest message's; the highest place comes first
--   reply   1; 0 and nothing done: oldest and newest are not at the ends of the window
--
-- No message may be equal to another element of the list: then the ends of the window prove
-- what is between them.
--
-- A crash before: all messages are unacked.  After: acked messages are gone, their locks are
-- free, the next of their groups have their turn, their batches have counted them, and the
-- others are as they were, in the same order.

-- include rights

local call = redis.call
window = tonumber(window)

if call('LINDEX', unacked, -1) ~= oldest
    or call('LINDEX', unacked, -window) ~= newest then
  return 0
end

-- Messages of the window that stay, the newest first; neighbours are read together.
local function read_others()
  local others, i = {}, first_place
  while ARGV[i] do
    local first = i
    while i < #ARGV and ARGV[i] - 1 == tonumber(ARGV[i + 1]) do
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

-- A refusal changes nothing: before Redis 7, the first LSET or RPUSH is refused.
local function ack()
  if not mark then
    call('LTRIM', unacked, 0, -window - 1)
    return
  end
  -- LTRIM changes nothing and needs no memory; see claim.lua.
  call('LTRIM', unacked, 0, -1)
  if mark ~= 'keep' then
    need(unacked, 'LREM')
    for i = first_place, #ARGV do
      call('LSET', unacked, -ARGV[i], mark)
    end
    call('LREM', unacked, first_place - 1 - #ARGV, mark)
    return
  end
  local others = read_others()
  call('RPUSH', unacked, '')
  call('LTRIM', unacked, 0, -window - 2)
  call('RPUSH', unacked, unpack(others))
end

-- Most acks end here, and take less time than it takes to define the functions below.
if not q then
  ack()
  return 1
end

-- include leaving

local all, listed, acked = call('LRANGE', unacked, -window, -1), {}, {}
for i = first_place, #ARGV do
  listed[ARGV[i] + 0] = true
end
for place = 1, window do
  if not mark or (listed[place] or false) == (mark ~= 'keep') then
    acked[#acked + 1] = all[window + 1 - place]
  end
end
need()
check_types(q)
local options_of, batched = {}, {}
for i = 1, #acked do
  local w = options(acked[i])
  options_of[i] = w or false
  if w and w.batch then
    batched[#batched + 1] = w
    in_batches().check(q, w)
  end
end
-- The removal comes first, as it needs no memory; see claim.lua.
ack()

-- Turns of groups that need only a place in ready begin together.
local lines, of, keys = {}, {}, {}
for i = 1, #acked do
  local w = options_of[i]
  if w and w.line then
    lines[#lines + 1], of[#of + 1] = 'g' .. w.line, w
  end
  if w and w.key then
    keys[#keys + 1] = w
  end
end
lines[#lines + 1] = lines[1] and 's'
local holders = lines[1] and call('HMGET', q.locks, unpack(lines)) or {}
local _, most = slot_limits(holders[#lines])
local taken, members, ready = {}, {}, {}
for i = 1, #of do
  local turns
  if most > 1 then
    turns = turns_after(q, of[i])
  elseif holder(holders[i]) == of[i].id then
    turns = turns_of(q, of[i].line, { holders[i] }, 1, 1)
  end
  local turn = most == 1 and turns and turns[1]
  local v = turn and turn.v
  if turn and v.due <= now and not v.tick and v.priority == 0 then
    local n = #ready + 1
    taken[2 * n - 1], taken[2 * n] = lines[i], held_by(v.id or '')
    members[n], ready[n] = turn.member, turn.element
  elseif turns then
    begin_turns(q, turns)
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
for i = 1, #batched do
  in_batches().close(q, batched[i].id, batched[i].batch, 'done')
end
return 1
