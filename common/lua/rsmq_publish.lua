-- Publish messages.
--
--   KEYS  home (see lib/rsmq.lua), the set of all names, counters
--   ARGV  name of the queue; 'now', 'in' or 'at'; milliseconds from now, or
--         unix milliseconds; how many messages may be claimable, and how many
--         for one of a priority above 0; how many may be hidden, and how many
--         for one of a priority above 0 ('': any number); channel to tell how
--         many there are, or ''; then for each message its id, its length in
--         units of UTF-16, its priority, its further headers (see lib/rsmq.lua;
--         '': none) and its body
--   reply a letter for each: 'a', accepted; 'd', one of this id is there; 't',
--         it is longer than the queue's maxsize; 'f', the queue is full (as it
--         is for those behind it)
--
-- A crash before: none is there.  After: all that were accepted are, and they
-- have been counted.

-- include rsmq

local q = home(1)
local PRIORITY = 1e12
local FIRST, ARGS = 9, 5

local attributes = call('HMGET', q.h, 'vt', 'delay', 'maxsize')
if not (attributes[1] and attributes[2] and attributes[3]) then
  create(q.h, KEYS[5], ARGV[1], 30, 0, 65536)
  attributes = call('HMGET', q.h, 'vt', 'delay', 'maxsize')
end
-- What is of the wrong type is refused before anything is there.
call('ZCARD', q.z)
call('HLEN', q.x)
local maxsize = tonumber(attributes[3])
local due = now
if ARGV[2] == 'now' then
  due = now + (tonumber(attributes[2]) or 0) * 1000
elseif ARGV[2] == 'in' then
  due = now + tonumber(ARGV[3])
else
  due = math.max(now, tonumber(ARGV[3]))
end

local limited = ARGV[4] .. ARGV[5] .. ARGV[6] .. ARGV[7] ~= ''
local visible, hidden
if limited then
  visible = call('ZCOUNT', q.z, '-inf', int(now))
  hidden = call('ZCARD', q.z) - visible
end

local function is_full(priority)
  local at = (due > now and 6 or 4) + (priority > 0 and 1 or 0)
  local max = tonumber(ARGV[at])
  return max and (due > now and hidden or visible) >= max
end

local scores, bodies, extras, seen = {}, {}, {}, {}

local function flush()
  if #scores > 0 then
    call('ZADD', q.z, unpack(scores))
    call('HSET', q.h, unpack(bodies))
    scores, bodies = {}, {}
  end
  if #extras > 0 then
    call('HSET', q.x, unpack(extras))
    extras = {}
  end
end

local function publish(i)
  local id, units, priority = ARGV[i], tonumber(ARGV[i + 1]),
    tonumber(ARGV[i + 2])
  if maxsize and maxsize ~= -1 and units > maxsize then
    return 't'
  end
  if seen[id] or call('HEXISTS', q.h, id) == 1 then
    return 'd'
  end
  if limited and is_full(priority) then
    return 'f'
  end
  seen[id] = true
  if due > now then
    hidden = (hidden or 0) + 1
  else
    visible = (visible or 0) + 1
  end
  scores[#scores + 1] = int(due > now and due or due - priority * PRIORITY)
  scores[#scores + 1] = id
  bodies[#bodies + 1] = id
  bodies[#bodies + 1] = ARGV[i + 4]
  if ARGV[i + 3] ~= '' then
    extras[#extras + 1] = id
    extras[#extras + 1] = ARGV[i + 3]
  end
  if #scores >= 400 then
    flush()
  end
  return 'a'
end

local reply, accepted = {}, 0
for i = FIRST, #ARGV, ARGS do
  local verdict = 'f'
  if reply[#reply] ~= 'f' then
    verdict = publish(i)
  end
  reply[#reply + 1] = verdict
  accepted = accepted + (verdict == 'a' and 1 or 0)
end
flush()
if accepted > 0 then
  call('HINCRBY', q.h, 'totalsent', accepted)
  -- Whatever is there: the messages are more important than their number.
  redis.pcall('HINCRBY', KEYS[6], 'published', accepted)
  if ARGV[8] ~= '' then
    local there = call('ZCARD', q.z)
    for i = accepted - 1, 0, -1 do
      call('PUBLISH', ARGV[8], there - i)
    end
  end
end
return table.concat(reply)
