-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Publish messages.
--
-- KEYS q:PLACES names counters later settings [marks=*]
-- ARGV name when ms ready_max high_max delayed_max delayed_high_max channel new slot before
--      behind (id units priority extra body)...
-- NEEDS HSET HINCRBY PEXPIRE ZADD ZCARD HSETNX SADD
--
--   marks      of the publisher, if any (see lib/marks.lua)
--   when, ms   'now', 'in' or 'at'; milliseconds from now, or unix milliseconds
--   *_max      limits (see lib/limits.lua); hidden messages count as delayed
--   channel    for the number of messages, published after each; '': none
--   new        '1' if all ids are new
--   slot, before, behind  as in lib/marks.lua
--   units      the length of the body in units of UTF-16
--   extra      further headers (see lib/layout.lua); '': none
--   reply      nil and nothing done: the previous batch is not done; else a letter for each
--              message: 'a', accepted; 'd', the queue has this id; 't', longer than the
--              queue's maxsize; 'f', the queue is full, also for all messages behind
--
-- A crash before: no message is there.  After: all accepted messages are there, counted and
-- marked.  A marked batch is not published again: the reply is the earlier one.

-- include layout
-- include marks
-- include limits

local known = replied(marks, slot, before)
if known or overtakes(marks, slot, behind) then
  return known
end
local CHUNK = 200

need()
if channel ~= '' then
  need(channel, 'PUBLISH')
end
local attributes = call('HMGET', q.h, 'vt', 'delay', 'maxsize')
if not (attributes[1] and attributes[2] and attributes[3]) then
  create(q.h, names, name)
  attributes = call('HMGET', q.h, 'vt', 'delay', 'maxsize')
end
local maxsize = whole(attributes[3]) or math.huge
local due = now
if when == 'now' then
  due = now + (whole(attributes[2]) or 0) * 1000
elseif when == 'in' then
  due = now + tonumber(ms)
else
  due = math.max(now, tonumber(ms))
end
local due_text, is_new = int(due), new ~= ''
if due > now then
  call('ZCARD', later)
end

local limits = limits_of(ready_max, high_max, delayed_max, delayed_high_max, settings)
local limited = table.concat(limits) ~= ''
local there, seen = 0, {}
if limited then
  there = call('ZCOUNT', q.z, '-inf', int(now))
  if due > now then
    there = call('ZCARD', q.z) - there
  end
end

local function verdict_of(id, units, priority)
  local high = priority ~= '0' and 1 or 0
  local max = limited and tonumber(limits[(due > now and 3 or 1) + high])
  if tonumber(units) > maxsize then
    return 't'
  elseif not is_new and (seen[id] or call('HEXISTS', q.h, id) == 1) then
    return 'd'
  end
  return max and there >= max and 'f' or 'a'
end

local reply, count, accepted = {}, 0, 0

for first = first_id, #ARGV, each_id * CHUNK do
  local scores, bodies, extras, waiting, n = {}, {}, {}, {}, 0
  for i = first, math.min(first + each_id * CHUNK - 1, #ARGV), each_id do
    local id, units, priority, extra, body = unpack(ARGV, i, i + each_id - 1)
    local verdict = reply[count] == 'f' and 'f' or verdict_of(id, units, priority)
    count = count + 1
    reply[count] = verdict
    if verdict == 'a' then
      if not is_new then
        seen[id] = true
      end
      there = there + 1
      scores[n + 1], scores[n + 2] = (priority == '0' or due > now) and due_text
        or int(due - tonumber(priority) * PRIORITY), id
      bodies[n + 1], bodies[n + 2] = id, body
      n = n + 2
      if extra ~= '' then
        extras[#extras + 1] = id
        extras[#extras + 1] = extra
      end
      if due > now and priority ~= '0' then
        waiting[#waiting + 1] = due_text
        waiting[#waiting + 1] = id
      end
    end
  end
  if n > 0 then
    -- Keys of the wrong type are refused before any write: the hash of bodies has been
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
  -- Errors are ignored: the messages matter more than the list of names and the counts.
  redis.pcall('SADD', names, name)
  redis.pcall('HINCRBY', counters, 'published', accepted)
  if channel ~= '' then
    local there = call('ZCARD', q.z)
    for i = accepted - 1, 0, -1 do
      call('PUBLISH', channel, there - i)
    end
  end
end
reply = table.concat(reply)
mark(marks, slot, before, reply)
return reply
