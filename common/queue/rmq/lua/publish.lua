-- Publish messages that ask for more than a place in ready.
--
--   KEYS  the queue's (see lib/place.lua), counters, rmq::queues, marks of the
--         publisher, if it has any (see lib/marks.lua)
--   ARGV  'now', 'in' or 'at'; milliseconds from now, or unix milliseconds;
--         how many messages may be claimable, or in line for their group's
--         turn, and how many for one of a priority above 0; how many may be
--         delayed, and how many for one of a priority above 0 ('': any
--         number); 'alike' if all ask for the same, and have their id as what
--         makes them unique, else ''; place and before, as marked; then for
--         each message 32 bytes that make it unique, and the element
--   reply a letter for each: 'a', accepted; 'd', another has its key; 's', its
--         last tick is over; 'f', the queue is full (as it is for those behind
--         it)
--
-- A crash before: none is there.  After: all that were accepted are, and they
-- have been counted, and marked.  A batch that is marked is not published again:
-- the reply is the one of then.

-- include place
-- include marks

local FIRST = 10
local known = replied(KEYS[9], ARGV[8], ARGV[9])
if known then
  return known
end
local q = queue_keys(1)
local due = ARGV[1] == 'now' and 0 or tonumber(ARGV[2])
if ARGV[1] == 'in' then
  due = due + now
end
check_types(q)
local tick = clock(q)

-- Messages in line behind others of their group count as claimable, whatever else
-- they wait for.
local function is_full(w)
  local in_line = call('ZCOUNT', q.delayed, IN_LINE, '+inf')
  local high = w and w.priority > 0
  local joins = w and w.line and call('HEXISTS', q.locks, 'g' .. w.line) == 1
  if not joins and (due > now or w and w.tick and w.tick > tick) then
    local max = tonumber(high and ARGV[6] or ARGV[5])
    return max and call('ZCARD', q.delayed) - in_line >= max
  end
  local max = tonumber(high and ARGV[4] or ARGV[3])
  return max and
    call('LLEN', q.ready) + call('ZCARD', q.priority) + in_line >= max
end
local limited = ARGV[3] .. ARGV[4] .. ARGV[5] .. ARGV[6] ~= ''

-- Messages that only have to be put somewhere, all into the same key: they are
-- cheaper together.
local batch, target = {}, nil

local function flush()
  if #batch > 0 then
    call(target == q.ready and 'LPUSH' or 'ZADD', target, unpack(batch))
    batch = {}
  end
end

local function add(key, member, score)
  if key ~= target or #batch >= 200 then
    flush()
    target = key
  end
  batch[#batch + 1] = score
  batch[#batch + 1] = member
end

local alike = ARGV[7] ~= '' and options(ARGV[FIRST]:sub(33))
if KEYS[9] then
  need(KEYS[9], 'HSET', 'PEXPIRE')
end
-- Else all are put into the same key by the same command.
if ARGV[7] == '' or alike and (alike.line or alike.tick) then
  need(q.locks, 'LPUSH', 'ZADD', 'HGET', 'HSET', 'HDEL', 'HRANDFIELD', 'SET',
    'HEXISTS', 'ZCOUNT')
end
if alike then
  note_late(q, alike)
end

local function options_of(arg)
  if ARGV[7] == '' then
    return options(arg:sub(33))
  end
  return alike and setmetatable({ id = arg:sub(1, 32) }, { __index = alike })
end

local function publish_one(arg, w)
  if w and (not alike or w.line or w.tick) then
    flush()
    admit(q, arg:sub(33), w, due, arg:sub(1, 32))
  elseif due > now then
    add(q.delayed, arg, due)
  elseif w and w.priority ~= 0 then
    add(q.priority, in_order() .. arg:sub(33), -w.priority)
  else
    add(q.ready, arg:sub(33))
  end
end

local function publish(arg)
  local w = options_of(arg)
  if w and w.last_tick and w.last_tick < tick then
    return 's'
  end
  if limited then
    flush()
    if is_full(w) then
      return 'f'
    end
  end
  if w and w.line and not alike and is_copy(q, w) then
    local element
    element, w = copied(arg:sub(33), w)
    arg = arg:sub(1, 32) .. element
  end
  if w and w.key and not lock(q, w, true) then
    return 'd'
  end
  publish_one(arg, w)
  return 'a'
end

local reply, accepted = {}, 0
for i = FIRST, #ARGV do
  local verdict = 'f'
  if reply[#reply] ~= 'f' then
    verdict = publish(ARGV[i])
  end
  reply[#reply + 1] = verdict
  accepted = accepted + (verdict == 'a' and 1 or 0)
end
flush()
if accepted > 0 then
  make_known(q, KEYS[8])
  -- Whatever is there: the messages are more important than their number.
  redis.pcall('HINCRBY', KEYS[7], 'published', accepted)
end
reply = table.concat(reply)
mark(KEYS[9], ARGV[8], ARGV[9], reply)
return reply
