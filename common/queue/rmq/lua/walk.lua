-- One step of a walk through the messages of a list, from its right end, where the
-- oldest is, or of a sorted set, by score.
--
--   KEYS  list or set; then for 'take' the keys of its queue, and those of the
--         target (the same for what is dropped; see lib/place.lua),
--         rmq::queues, or outgoing
--   ARGV  'read', from, anchor, max messages, about how many bytes, needle
--         'skip', the same: begins behind the first messages, from of them
--         'take', from, anchor, how, span, tombstone, element...
--         Of a set, 'VERB LOW HIGH': only what has such a score is gone through.  Its
--         anchor is 'SCORE MEMBER'; 'take' has members, and no span or tombstone
--   how   'move': to be claimed, without the 32 bytes that a member has in front, and
--         at once.  Those in line for their group stay there, unless it is another
--         queue; 'fresh': the same, and the attempts in their headers begin anew;
--         'vanish': they are removed, and nobody has run them; 'done': they are
--         removed, and have been run
--
-- from messages are behind the walk, and the anchor is the last of them:
-- if it is elsewhere now, then somebody took messages before it.
--
-- 'read' looks at the next slice.
--   reply {from, how many were behind before it; how many it looked at; how
--         many follow; the new anchor, or 0 if it is the last element below,
--         or the same if there is none; element..., or member, score...}, those with
--         the needle in them only
--
-- 'take' moves those that are given, if they are still there; in a list, it looks
-- again at the span messages behind the walk.
--   reply {how many were moved, from, microseconds that this took, in a list but for
--         what does not depend on how many they are; the new anchor, or 0 if it is
--         the same}
--
-- A crash before: all are where they were.  After: each is in its new place only, or
-- in outgoing.
-- Commands that may be refused (wrong type, missing right) come first or are
-- undone, so a refusal changes nothing.

-- include place
-- include moves
-- include cursor

local key, q = KEYS[1], queue_keys(2)
local to, queues = queue_keys(8)
local verb, low, high = ARGV[1]:match('^(%a+) ?(%S*) ?(%S*)$')
local from, anchor, score = tonumber(ARGV[2]), ARGV[3], nil
local in_set = low ~= ''
if in_set then
  score, anchor = anchor:match('^(%S*) ?(.*)$')
end

local function count()
  return in_set and call('ZCOUNT', key, low, high) or call('LLEN', key)
end

-- How many members are before the first one.
local function base()
  return call('ZCARD', key) - call('ZCOUNT', key, low, '+inf')
end

-- How many are behind the walk in a list.
local function find_anchor()
  local at = locate(key, from, 2000, 1048576, function(element)
    return element == anchor
  end)
  if at or from == 0 then
    return at or 0
  end
  -- Bounded, as it keeps the server for some 25 ns each.
  local found = call('LPOS', key, anchor, 'RANK', -1, 'MAXLEN', 200000)
  return found and call('LLEN', key) - found or 0
end

local function read(max, room, needle)
  local reply, last = { from, 0, 0, 0 }, nil
  local left, first = count() - from, in_set and from + base() or from

  local function see(element, its)
    last, score, room = element, its, room - #element
    if needle == '' or element:find(needle, in_set and 33 or 1, true) then
      reply[#reply + 1] = element
      reply[#reply + 1] = its
    end
    return room <= 0
  end

  reply[2] =
    go_through(key, in_set and 'ZRANGE', first, math.min(max, left), see)
  reply[3] = left - reply[2]
  if last and in_set then
    reply[4] = score .. ' ' .. last
  elseif last and (#reply == 4 or reply[#reply] ~= last) then
    reply[4] = last
  end
  return reply
end

-- Those that are still there, and their places: in a set, the members.
local function find(how)
  local wanted, found, places = {}, {}, {}
  local stay = how == 'move' and not leaves(q, to)
  if in_set then
    for i = 5, #ARGV do
      local at = tonumber(call('ZSCORE', key, ARGV[i]))
      if at and (not stay or at < IN_LINE) then
        places[#places + 1] = ARGV[i]
        found[#found + 1] = ARGV[i]:sub(33)
      end
    end
    return found, places
  end
  for i = 7, #ARGV do
    wanted[ARGV[i]] = (wanted[ARGV[i]] or 0) + 1
  end
  local span = math.min(tonumber(ARGV[5]), from)
  local slice = span > 0 and list_slice(key, from - span, span) or {}
  for i = 1, #slice do
    local n = wanted[slice[i]] or 0
    if n > 0 then
      wanted[slice[i]] = n - 1
      found[#found + 1] = slice[i]
      places[#places + 1] = span - from - i
    end
  end
  return found, places
end

local function stopwatch()
  local time = call('TIME')
  return time[1] * 1000000 + time[2]
end

-- How long it took, and in a list maybe an error: then nothing has changed.
local function remove(found, places)
  if in_set then
    call('ZREM', key, unpack(places))
    return 0
  end
  local start = stopwatch()
  mark_places(key, places, ARGV[6])
  local took = stopwatch() - start
  local done = remove_marked(redis.pcall, key, #places, ARGV[6], from)
  if type(done) == 'number' then
    return took
  end
  for i = 1, #places do
    call('LSET', key, places[i], found[i])
  end
  return took, done
end

-- Those in a list of which none has options come before the removal, which may be
-- refused; else all come after it, in order.  Those in a set come before it in any case:
-- servers before Redis 7 cannot tell whether what comes will be refused.
local function take_found(how, found, places)
  local moves = how == 'move' or how == 'fresh'
  local new, w, asking = all_options(found, how == 'fresh')
  local plain = asking == 0 and not departure
  local before = plain or in_set
  local own = how == 'move' and not leaves(q, to)
  if not plain then
    be_sure(q, to, moves)
  elseif moves then
    -- Changes nothing and needs no memory; see claim.lua.
    call('LTRIM', to.ready, 0, -1)
  end
  if moves and before then
    arrive_all(to, new, w, own, false, in_set)
  end
  local took, refused = remove(found, places)
  if refused and plain and moves then
    call('LTRIM', to.ready, #found, -1)
  end
  if refused then
    return took, refused
  end
  if moves then
    make_known(to, queues)
  end
  local start = in_set and now_us or not plain and stopwatch()
  if moves and not before then
    arrive_all(to, new, w, own)
  end
  -- A rejected message holds nothing, though another one with its id may.
  if how == 'vanish' or how == 'move' and not own then
    let_go(q, w, (in_set or how == 'vanish') and 'vanish' or 'done',
      how == 'vanish')
  end
  return took + (start and stopwatch() - start or 0)
end

-- What is behind the walk now.  Others may have had their turn, or become due.
local function new_anchor(same)
  if not in_set then
    return same and 0 or from > 0 and call('LINDEX', key, -from) or ''
  end
  local at = base() + from - 1
  local last = from > 0 and call('ZRANGE', key, at, at, 'WITHSCORES') or {}
  from = last[1] and from or 0
  return last[1] and last[2] .. ' ' .. last[1] or ''
end

local function take(how)
  how = prepare_departure(how, queues)
  local found, places = find(how)
  if #found == 0 then
    return { 0, from, 0, 0 }
  end
  -- Changes nothing and needs no memory, see claim.lua; what is refused later is so now.
  if in_set then
    need(key, 'ZRANGE')
    call('ZREM', key, '')
  else
    need(key, 'LLEN', 'LREM')
    call('LTRIM', key, 0, -1)
    call('LSET', key, places[1], found[1])
  end
  local took, refused = take_found(how, found, places)
  if refused then
    return refused
  end
  local same = not in_set and places[#places] > -from
  from = from - #found
  local last = new_anchor(same)
  return { #found, from, took, last }
end

if verb == 'skip' then
  from = math.min(from, count())
elseif not in_set then
  from = find_anchor()
elseif from > 0 and tonumber(call('ZSCORE', key, anchor)) ~= tonumber(score) then
  from = call('ZCOUNT', key, low, '(' .. score)
elseif from > 0 then
  from = call('ZRANK', key, anchor) + 1 - base()
end
if verb == 'take' then
  return take(ARGV[4])
end
return read(tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6])
