-- One step of a walk through the messages of a sorted set, by score.
--
--   KEYS  set; then for 'take' the keys of its queue, and those of the
--         target (the same for what is dropped; see lib/place.lua),
--         rmq::queues, or outgoing
--   ARGV  'read', low, high, from, anchor, its score, max messages, about how
--         many bytes, needle
--         'skip', the same: begins behind the first messages, from of them
--         'take', low, high, from, anchor, its score, how, member...
--   how   'move': to be claimed now, without the 32 bytes in front.  Those in
--         line for their group stay there, unless it is another queue.
--         'drop': they are removed
--
-- Only what has a score from low to high is gone through.  from messages of it
-- are behind the walk, and the anchor is the last of them.  'read' looks at
-- the next slice.
--   reply {from, how many were behind before it; how many it looked at; how
--         many follow; the new anchor; its score; member, score...}, those with
--         the needle in them only
--
-- 'take' moves the members that are given, if they are still there.
--   reply {how many were moved, from, microseconds that it took, the new
--         anchor, its score}
--
-- A crash before: all are where they were.  After: each is in its new place
-- only, or in outgoing.

-- include place
-- include moves

local key, q = KEYS[1], queue_keys(2)
local to, queues = queue_keys(8)
local low, high = ARGV[2], ARGV[3]
local from, anchor, score = tonumber(ARGV[4]), ARGV[5], ARGV[6]
-- How many are before the first one.
local base = call('ZCARD', key) - call('ZCOUNT', key, low, '+inf')

local function locate()
  if from == 0 or tonumber(call('ZSCORE', key, anchor)) ~= tonumber(score) then
    return from == 0 and 0 or call('ZCOUNT', key, low, '(' .. score)
  end
  return call('ZRANK', key, anchor) + 1 - base
end

local function read(max, room, needle)
  local reply, looked, size = { from, 0, 0, anchor, score }, 0, 1
  local left = call('ZCOUNT', key, low, high) - from
  while looked < math.min(max, left) and room > 0 do
    local n = math.min(size, max - looked, left - looked)
    local behind = base + from + looked
    local part = call('ZRANGE', key, behind, behind + n - 1, 'WITHSCORES')
    for i = 1, #part, 2 do
      if room <= 0 then
        break
      end
      looked, room = looked + 1, room - #part[i]
      reply[4], reply[5] = part[i], part[i + 1]
      if needle == '' or part[i]:find(needle, 33, true) then
        reply[#reply + 1] = part[i]
        reply[#reply + 1] = part[i + 1]
      end
    end
    size = math.min(2 * size, 32)
  end
  reply[2] = looked
  reply[3] = left - looked
  return reply
end

local function find(how, same)
  local members, elements = {}, {}
  for i = 8, #ARGV do
    local at = tonumber(call('ZSCORE', key, ARGV[i]))
    if at and (how == 'drop' or not same or at < IN_LINE) then
      members[#members + 1] = ARGV[i]
      elements[#elements + 1] = ARGV[i]:sub(33)
    end
  end
  return members, elements
end

local function take(how)
  how = prepare_departure(how, queues)
  local same = not leaves(q, to)
  local members, elements = find(how, same)
  local w, asking = all_options(elements)
  need(key, 'ZRANGE')
  -- Changes nothing and needs no memory; see claim.lua.
  call('ZREM', key, '')
  if asking > 0 then
    be_sure(q, to, how == 'move')
  end
  for i = 1, how == 'move' and #elements or 0 do
    arrive(to, departure and elements[i] or at_once(to, elements[i], w[i]),
      w[i], same)
  end
  arrive_plain(to)
  if #members > 0 then
    call('ZREM', key, unpack(members))
    if how == 'move' then
      make_known(to, queues)
    end
  end
  if how == 'drop' then
    drop(q, w, 'vanish')
  end
  for i = 1, how == 'drop' and 0 or same and 0 or #w do
    leave(q, w[i], 'vanish')
  end
  from = from - #members
  -- Others may have had their turn, or become due.
  local rank = call('ZCARD', key) - call('ZCOUNT', key, low, '+inf') + from - 1
  local last = from > 0 and call('ZRANGE', key, rank, rank, 'WITHSCORES') or {}
  return { #members, last[1] and from or 0, stopwatch() - now_us,
    last[1] or '', last[2] or '0' }
end

from = ARGV[1] == 'skip' and math.min(from, call('ZCOUNT', key, low, high))
  or locate()
if ARGV[1] == 'take' then
  return take(ARGV[7])
end
return read(tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9])
