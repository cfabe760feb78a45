-- Publish messages.
--
--   KEYS  the queue's (see lib/layout.lua), the set of all names, counters, later,
--         settings, marks of the publisher, if it has any (see lib/marks.lua)
--   ARGV  name of the queue; 'now', 'in' or 'at'; milliseconds from now, or unix
--         milliseconds; four limits (see lib/limits.lua), where those that are hidden
--         count as delayed; channel to tell how many there are, or ''; '1' if all ids
--         are new; place, before and behind, as in lib/marks.lua; then for each message
--         its id, its length in units of UTF-16, its priority, its further headers (see
--         lib/layout.lua; '': none) and its body
--   reply nil: the batch before it is not done, so nothing was; else a letter for each:
--         'a', accepted; 'd', one of this id is there; 't', it is longer than the
--         queue's maxsize; 'f', the queue is full (as it is for those behind it)
--
-- A crash before: none is there.  After: all that were accepted are, and they have been
-- counted, and marked.  A batch that is marked is not published again: the reply is the
-- one of then.

-- include layout
-- include marks
-- include limits

local q, names, counters, later, settings, marks = queue_keys(1)
local known = replied(marks, ARGV[10], ARGV[11])
if known or overtakes(marks, ARGV[10], ARGV[12]) then
  return known
end
local FIRST, ARGS = 13, 5
local CHUNK = 200

need(q.h, 'HSET', 'HINCRBY')
if marks then
  need(marks, 'PEXPIRE')
end
if ARGV[8] ~= '' then
  need(ARGV[8], 'PUBLISH')
  need(q.z, 'ZCARD')
end
local attributes = call('HMGET', q.h, 'vt', 'delay', 'maxsize')
if not (attributes[1] and attributes[2] and attributes[3]) then
  need_create(q.h)
  create(q.h, names, ARGV[1])
  attributes = call('HMGET', q.h, 'vt', 'delay', 'maxsize')
end
local maxsize = whole(attributes[3]) or math.huge
local due = now
if ARGV[2] == 'now' then
  due = now + (whole(attributes[2]) or 0) * 1000
elseif ARGV[2] == 'in' then
  due = now + tonumber(ARGV[3])
else
  due = math.max(now, tonumber(ARGV[3]))
end
local due_text, is_new = int(due), ARGV[9] ~= ''
if due > now then
  need(later, 'ZADD')
  call('ZCARD', later)
end

local limits = limits_of(ARGV[4], ARGV[5], ARGV[6], ARGV[7], settings)
local limited = table.concat(limits) ~= ''
local there, seen = 0, {}
if limited then
  there = call('ZCOUNT', q.z, '-inf', int(now))
  if due > now then
    there = call('ZCARD', q.z) - there
  end
end

local function verdict_of(i, id)
  local high = ARGV[i + 2] ~= '0' and 1 or 0
  local max = limited and tonumber(limits[(due > now and 3 or 1) + high])
  if tonumber(ARGV[i + 1]) > maxsize then
    return 't'
  elseif not is_new and (seen[id] or call('HEXISTS', q.h, id) == 1) then
    return 'd'
  end
  return max and there >= max and 'f' or 'a'
end

local reply, count, accepted = {}, 0, 0

for first = FIRST, #ARGV, ARGS * CHUNK do
  local scores, bodies, extras, waiting, n = {}, {}, {}, {}, 0
  for i = first, math.min(first + ARGS * CHUNK - 1, #ARGV), ARGS do
    local id, priority = ARGV[i], ARGV[i + 2]
    local verdict = reply[count] == 'f' and 'f' or verdict_of(i, id)
    count = count + 1
    reply[count] = verdict
    if verdict == 'a' then
      if not is_new then
        seen[id] = true
      end
      there = there + 1
      scores[n + 1], scores[n + 2] = (priority == '0' or due > now) and due_text
        or int(due - tonumber(priority) * PRIORITY), id
      bodies[n + 1], bodies[n + 2] = id, ARGV[i + 4]
      n = n + 2
      if ARGV[i + 3] ~= '' then
        extras[#extras + 1] = id
        extras[#extras + 1] = ARGV[i + 3]
      end
      if due > now and priority ~= '0' then
        waiting[#waiting + 1] = due_text
        waiting[#waiting + 1] = id
      end
    end
  end
  if n > 0 then
    -- Keys of the wrong type are refused before any write: the body's key has been
    -- read, and the set is written first.
    if extras[1] then
      call('HLEN', q.x)
    end
    call('ZADD', q.z, unpack(scores))
    call('HSET', q.h, unpack(bodies))
    if extras[1] then
      call('HSET', q.x, unpack(extras))
    end
    if waiting[1] then
      call('ZADD', later, unpack(waiting))
    end
    accepted = accepted + n / 2
  end
end
if accepted > 0 then
  redis.pcall('HINCRBY', q.h, 'totalsent', accepted)
  -- Whatever is there: the messages are more important than the list of names,
  -- and than their number.
  redis.pcall('SADD', names, ARGV[1])
  redis.pcall('HINCRBY', counters, 'published', accepted)
  if ARGV[8] ~= '' then
    local there = call('ZCARD', q.z)
    for i = accepted - 1, 0, -1 do
      call('PUBLISH', ARGV[8], there - i)
    end
  end
end
reply = table.concat(reply)
mark(marks, ARGV[10], ARGV[11], reply)
return reply
