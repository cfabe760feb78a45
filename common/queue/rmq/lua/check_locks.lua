-- One step of a walk through the messages at one place, for locks that nobody
-- holds and messages that are too late to run.
--
--   KEYS  the queue's (see lib/place.lua), rejected, and for 'unacked' that list
--   ARGV  'ready', 'priority', 'delayed' or 'unacked'; where the walk is: in a
--         list, how many are behind it, in a set, the score of the last one; a
--         sign by which the last one is known ('' at the beginning); '1' to
--         change nothing; a text that is the element of no list
--   reply {1 if more follow, else 0; how many were too late; how many locks
--         were missing; the earliest expiry, and the lowest last tick, of those
--         that stay ('': none); where the walk is; the sign; the id of each
--         message that may hold a lock...}
--
-- An expired message goes to rejected with the reason, and releases its locks; if
-- the message is unacked, its consumer decides.  A message out of line whose
-- group nobody holds takes the group.
--
-- A list is walked from its right end, a set from its highest score.  So a
-- message that stays in a place, or goes from delayed to ready to unacked, is
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
local dry, tombstone = ARGV[4] == '1', ARGV[5]
local key = unacked or q[where]
local tick = clock(q)
local work, missing, expires, last_tick = 1000, 0, nil, nil
local ids = {}

local function lower(a, b)
  return not a and b or b and math.min(a, b) or a
end

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
    expires = lower(expires, w.expires)
    last_tick = lower(last_tick, w.last_tick)
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

local function reject(f)
  call('LPUSH', rejected, with_error(f.element, f.why))
end

local function let_go(f)
  leave(q, f.w, 'vanish')
  tell(q, f.w, 'expired', f.why)
end

-- How many are behind the walk.  Nothing is looked for to the left of where the
-- anchor was: something that was brought there may be equal to it.
local function locate()
  local from = tonumber(at)
  local last = from > 0 and call('LINDEX', key, -from)
  if last and redis.sha1hex(last) == sign then
    return from
  end
  local room = 262144
  for i = from - 1, math.max(1, from - 500), -1 do
    local element = call('LINDEX', key, -i)
    room = room - (element and #element or 0)
    if room < 0 then
      break
    elseif element and redis.sha1hex(element) == sign then
      return i
    end
  end
  return 0
end

local function walk_list()
  local from, passed = locate(), 0
  local left = call('LLEN', key) - from
  local looked = go_through(left, function(behind, n)
    return list_slice(key, from + behind, n)
  end, function(element)
    passed = passed + 1
    return see(element, -from - passed)
  end)
  local more = left > looked
  if #found > 0 and not dry then
    -- Commands that may be refused come first, so a refusal changes nothing.
    call('LREM', q.results .. tombstone, 1, tombstone)
    call('LSET', key, places[1], found[1].element)
    for i = 1, #found do
      reject(found[i])
    end
    mark_places(key, places, tombstone)
    remove_marked(call, key, #places, tombstone, from)
    looked = looked - #found
    for i = 1, #found do
      let_go(found[i])
    end
  end
  at = from + looked
  local last = at > 0 and call('LINDEX', key, -at)
  sign = last and redis.sha1hex(last) or ''
  return more
end

-- Lua compares as the locale does.
local function comes_before(a, b)
  for i = 1, 32 do
    local x, y = a:byte(i) or 0, b:byte(i) or 0
    if x ~= y then
      return x < y
    end
  end
  return false
end

-- The rank from above of the first one behind the walk.
local function rank()
  local low, high = 0, sign == '' and 0 or call('ZCARD', key)
  local score = tonumber(at)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local e = call('ZREVRANGE', key, middle, middle, 'WITHSCORES')
    local its = tonumber(e[2])
    if its < score or its == score and comes_before(e[1], sign) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

local function walk_set()
  local from = rank()
  local left = call('ZCARD', key) - from
  local looked = go_through(left, function(behind, n)
    return set_slice('ZREVRANGE', key, from + behind, from + behind + n - 1)
  end, function(member, score)
    at, sign = score, member:sub(1, 32)
    return see(member:sub(33), member,
      where == 'delayed' and tonumber(score) >= IN_LINE)
  end)
  for i = 1, dry and 0 or #found do
    reject(found[i])
    call('ZREM', key, places[i])
    let_go(found[i])
  end
  return left > looked
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
local is_list = where == 'ready' or where == 'unacked'
local more = (is_list and walk_list or walk_set)()

local function text(n)
  return n and string.format('%.0f', n) or ''
end

local reply = { more and 1 or 0, #found, missing, text(expires), text(last_tick),
  tostring(at), sign }
for i = 1, #ids do
  reply[7 + i] = ids[i]
end
return reply
