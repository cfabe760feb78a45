-- One step of a walk through the messages at one place, for locks that nobody
-- holds and messages that are too late to run.
--
--   KEYS  the queue's (see lib/place.lua), rejected, and for 'unacked' that list
--   ARGV  'ready', 'priority', 'delayed' or 'unacked'; where the walk is: in a
--         list, how many are behind it, in a set, the score of the last one; a
--         sign by which the last one is known ('' at the beginning); '1' to
--         change nothing; a text that is the element of no list; '1' to walk a
--         set from its lowest score, so that what is too late leaves it in order
--   reply {1 if more follow, else 0; how many were too late; how many locks
--         were missing; the earliest expiry, and the lowest last tick, of those
--         that stay ('': none); where the walk is; the sign; the id of each
--         message that may hold a lock...}
--
-- An expired message goes to rejected with the reason, and releases its locks; if
-- the message is unacked, its consumer decides.  A message out of line whose
-- group nobody holds takes the group.
--
-- A list is walked from its right end, a set from its highest score, unless only
-- what is too late is looked for.  So a message that stays in a place, or goes from delayed to ready to unacked, is
-- seen if the walks through these come in that order: where nobody knows any
-- more what has been seen, a walk begins again.
--
-- Bounded: some 1000 messages, 150 that ask for something, or about 512 KiB.
-- A crash before: nothing has happened.  After: each message is in its old
-- place, or in rejected only.

-- include place
-- include cursor

local q, rejected, unacked = queue_keys(1)
local where, at, sign = ARGV[1], ARGV[2], ARGV[3]
local dry, tombstone, ascends = ARGV[4] == '1', ARGV[5], ARGV[6] == '1'
local key = unacked or q[where]
local is_list = where == 'ready' or where == 'unacked'
local tick = clock(q)
local work, missing, expires, last_tick = 1000, 0, math.huge, math.huge
local ids = {}

-- The error of an earlier run, if there is one, makes room for this one.
local function with_error(element, why)
  local stop = element:find('\n', 6, true)
  local head, from = element:sub(1, stop), nil
  why = '"Mq-Error":["' .. why .. '"]'
  local start, at = head:find('"Mq%-Error" *: *%[')
  if not start then
    from = head:find('{', 6, true)
    return head:sub(1, from) .. why .. ',' .. element:sub(from + 1)
  end
  local quoted = false
  repeat
    at = at + 1
    local c = head:sub(at, at)
    if quoted and c == '\\' then
      at = at + 1
    elseif c == '"' then
      quoted = not quoted
    end
  until c == '' or c == ']' and not quoted
  return head:sub(1, start - 1) .. why .. element:sub(at + 1)
end

-- Those that are too late; of a set their members, of a list their places.
local found, places = {}, {}

-- Whether the next one is enough for this step.
local function see(element, place, in_line)
  local w = options(element)
  work = work - (w and 6 or 1) - #element / 512
  if not w then
    return work <= 0
  end
  local why = w.expires and now > w.expires and 'expired'
    or w.last_tick and w.last_tick < tick
      and string.format('stale: tick %.0f is over', w.last_tick)
  -- A message that began to run in time keeps its locks to the end.
  if (w.line or w.key) and (dry or not why or where == 'unacked') then
    ids[#ids + 1] = w.id
  end
  if where ~= 'unacked' and why then
    found[#found + 1] = { element = element, w = w, why = why }
    places[#places + 1] = place
    return work <= 0
  elseif where ~= 'unacked' then
    expires = math.min(expires, w.expires or math.huge)
    last_tick = math.min(last_tick, w.last_tick or math.huge)
  end
  if w.line and not in_line
      and call('HEXISTS', q.locks, 'g' .. w.line) == 0 then
    missing = missing + 1
    if not dry then
      take_group(q, w.line, w.id)
    end
  end
  return work <= 0
end

-- Takes those that are too late away.  Other messages have their turn behind that.
local function reject(from)
  if is_list then
    -- Commands that may be refused come first, so a refusal changes nothing.
    call('LREM', q.results .. tombstone, 1, tombstone)
    call('LSET', key, places[1], found[1].element)
  end
  for i = 1, #found do
    call('LPUSH', rejected, with_error(found[i].element, found[i].why))
  end
  if is_list then
    mark_places(key, places, tombstone)
    remove_marked(call, key, #places, tombstone, from)
  else
    call('ZREM', key, unpack(places))
  end
  for i = 1, #found do
    leave(q, found[i].w, 'vanish')
    tell(q, found[i].w, 'expired', found[i].why)
  end
end

if not dry then
  need(key, 'LLEN', 'LINDEX', 'LRANGE', 'LSET', 'LREM', 'ZCARD', 'ZREVRANGE',
    'HEXISTS')
  need_leave(q)
  need_tell(q)
  -- These commands change nothing and need no memory, see claim.lua; and they
  -- refuse keys of the wrong type.
  call('LTRIM', rejected, 0, -1)
  call('ZREM', q.delayed, '')
  call('ZREM', q.priority, '')
  call('LTRIM', q.ready, 0, -1)
end
-- How many are behind the walk, and how many follow.
local from
if is_list then
  from = locate(key, tonumber(at), 500, 262144, function(element)
    return redis.sha1hex(element) == sign
  end) or 0
elseif sign == '' then
  from = 0
else
  from = count_before(key, at, sign)
  local last = call('ZRANGE', key, from, from)[1]
  from = not ascends and call('ZCARD', key) - from
    or from + (last and last:sub(1, 32) == sign and 1 or 0)
end
local left = call(is_list and 'LLEN' or 'ZCARD', key) - from

local range = not is_list and (ascends and 'ZRANGE' or 'ZREVRANGE')
local looked = go_through(key, range, from, left, function(element, score, n)
  if is_list then
    return see(element, -from - n)
  end
  at, sign = score, element:sub(1, 32)
  return see(element:sub(33), element,
    where == 'delayed' and tonumber(score) >= IN_LINE)
end)
local stay = looked
if #found > 0 and not dry then
  reject(from)
  stay = looked - #found
end
if is_list then
  at = from + stay
  local last = at > 0 and call('LINDEX', key, -at)
  sign = last and redis.sha1hex(last) or ''
end

local function text(n)
  return n < math.huge and string.format('%.0f', n) or ''
end

local reply = { left > looked and 1 or 0, #found, missing, text(expires),
  text(last_tick), tostring(at), sign }
for i = 1, #ids do
  reply[7 + i] = ids[i]
end
return reply
