-- One step of a walk through a list, from its right end, where the oldest is.
--
--   KEYS  list; then for 'take' the keys of its queue, and those of the
--         target (the same for what is dropped; see lib/place.lua),
--         rmq::queues, or outgoing
--   ARGV  'read', from, anchor, max messages, about how many bytes, needle
--         'skip', the same: begins behind the first messages, from of them
--         'take', from, anchor, span, tombstone, how, element...
--   how   'move': to be claimed; 'fresh': the same, and the attempts in their
--         headers begin anew; 'vanish': they are removed, and nobody has run
--         them; 'done': they are removed, and have been run
--
-- from messages are behind the walk, and the anchor is the last of them:
-- if it is elsewhere now, then somebody took messages at the right end.
--
-- 'read' looks at the next slice.
--   reply {from, how many were behind before it; how many it looked at; how
--         many follow; the new anchor, or 0 if it is the last element below,
--         or the same if there is none; element...}, those with the needle in
--         them only
--
-- 'take' looks again at the span messages behind the walk, and moves those
-- that are given, if they are still there.
--   reply {how many were moved, from, microseconds that this took, but for what
--         does not depend on how many they are; the new anchor, or 0 if it is the same}
--
-- A crash before: all are in the list.  After: each is in its new place only, or in
-- outgoing.
-- Commands that may be refused (wrong type, missing right) come first or are
-- undone, so a refusal changes nothing.

-- include place
-- include moves

local key, q = KEYS[1], queue_keys(2)
local target, queues = queue_keys(8)
local from, anchor = tonumber(ARGV[2]), ARGV[3]

-- The anchor's place, counted from the right; 0 when it has gone.  The nearest
-- one to the right comes first: in a list with many equal elements, the
-- outermost would set the walk back again and again.
local function locate()
  if from == 0 or call('LINDEX', key, -from) == anchor then
    return from
  end
  local at, size, room = from - 1, 4, 1048576
  while at > 0 and from - at < 2000 and room > 0 do
    local n = math.min(size, at)
    local part = call('LRANGE', key, -at, n - at - 1)
    for i = 1, #part do
      if part[i] == anchor then
        return at - n + #part - i + 1
      end
      room = room - #part[i]
    end
    at, size = at - n, math.min(2 * size, 64)
  end
  -- Bounded, as it keeps the server for some 25 ns each.
  local found = call('LPOS', key, anchor, 'RANK', -1, 'MAXLEN', 200000)
  return found and call('LLEN', key) - found or 0
end

local function read(max, room, needle)
  local reply, looked, size, last = { from, 0, 0, 0 }, 0, 1, nil
  local left = call('LLEN', key) - from
  while looked < math.min(max, left) and room > 0 do
    local n = math.min(size, max - looked, left - looked)
    local behind = from + looked
    local part = call('LRANGE', key, -behind - n, -behind - 1)
    for i = #part, 1, -1 do
      if room <= 0 then
        break
      end
      last, looked, room = part[i], looked + 1, room - #part[i]
      if needle == '' or last:find(needle, 1, true) then
        reply[#reply + 1] = last
      end
    end
    -- Not more: nobody knows how long the next ones are.
    size = math.min(2 * size, 32)
  end
  reply[2] = looked
  reply[3] = left - looked
  if looked > 0 and (#reply == 4 or reply[#reply] ~= last) then
    reply[4] = last
  end
  return reply
end

local function find_wanted(span)
  local wanted, found, places = {}, {}, {}
  for i = 7, #ARGV do
    wanted[ARGV[i]] = (wanted[ARGV[i]] or 0) + 1
  end
  span = math.min(span, from)
  local slice = span > 0 and call('LRANGE', key, -from, span - from - 1) or {}
  for i = #slice, 1, -1 do
    local n = wanted[slice[i]] or 0
    if n > 0 then
      wanted[slice[i]] = n - 1
      found[#found + 1] = slice[i]
      places[#places + 1] = i - from - 1
    end
  end
  return found, places
end

-- All at once: the nth of many, deep in a long list, is found quickly, but to
-- remove it by its value means to go there through all the others.
local function remove(found, places, tombstone)
  local start = stopwatch()
  for i = 1, #places do
    call('LSET', key, places[i], tombstone)
  end
  local took = stopwatch() - start
  local side = from > call('LLEN', key) / 2 and 1 or -1
  local done = redis.pcall('LREM', key, side * #places, tombstone)
  if type(done) == 'number' then
    return took
  end
  for i = 1, #places do
    call('LSET', key, places[i], found[i])
  end
  return took, done
end

-- Messages without options come before the removal, which may be refused; else all
-- come after it, in order, and cannot be refused any more.
local function take_found(q, to, how, found, places)
  local moves, new = how == 'move' or how == 'fresh', {}
  for i = 1, #found do
    new[i] = how == 'fresh' and anew(found[i], 'Mq-Attempt') or found[i]
  end
  local w, asking = all_options(new)
  asking = departure and 1 or asking
  if asking > 0 then
    be_sure(q, to, moves)
  elseif moves then
    -- Changes nothing and needs no memory; see claim.lua.
    call('LTRIM', to.ready, 0, -1)
    call('LPUSH', to.ready, unpack(new))
  end
  local took, refused = remove(found, places, ARGV[5])
  if refused and asking == 0 and moves then
    call('LTRIM', to.ready, #found, -1)
  end
  if not refused and moves then
    make_known(to, queues)
  end
  if refused or asking == 0 then
    return took, refused
  end
  local start = stopwatch()
  for i = 1, moves and #new or 0 do
    arrive(to, new[i], w[i], q.ready == to.ready and how == 'move')
  end
  arrive_plain(to)
  -- A rejected message holds nothing, though another one with its id may.
  if how == 'vanish' or how == 'move' and leaves(q, to) then
    drop(q, w, how == 'vanish' and how or 'done')
  end
  return took + stopwatch() - start
end

local function take(span, how)
  how = prepare_departure(how, queues)
  local found, places = find_wanted(span)
  if #found == 0 then
    return { 0, from, 0, 0 }
  end
  need(key, 'LLEN', 'LREM')
  call('LTRIM', key, 0, -1)
  call('LSET', key, places[1], found[1])
  local took, refused =
    take_found(q, target, how, found, places)
  if refused then
    return refused
  end
  local same = places[#places] > -from
  from = from - #found
  local last = from > 0 and not same and call('LINDEX', key, -from) or ''
  return { #found, from, took, same and 0 or last }
end

from = ARGV[1] == 'skip' and math.min(from, call('LLEN', key)) or locate()
if ARGV[1] == 'take' then
  return take(tonumber(ARGV[4]), ARGV[6])
end
return read(tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6])
