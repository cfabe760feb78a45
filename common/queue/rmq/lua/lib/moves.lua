-- Messages that an operator moves or drops, many in one step.  Needs place.

-- A number in the header line begins anew; a quote inside of a value has a
-- backslash before it, so the name is found nowhere else.
local function anew(element, name)
  if element:sub(1, 5) ~= '\255\0\190\190J' then
    return element
  end
  local head = element:sub(1, element:find('\n', 6, true) or 0)
  if not head:find(name, 6, true) then
    return element
  end
  local first, last = head:find('"' .. name:gsub('-', '%%-')
    .. '" *: *%[ *"%d+"')
  if not first then
    return element
  end
  return head:sub(1, first - 1) .. '"' .. name .. '":["0"'
    .. element:sub(last + 1)
end

-- Does to a queue what may be refused, without changing anything, so that no
-- refusal can come in the middle.
local function probe(q)
  clock(q)
  call('LTRIM', q.ready, 0, -1)
  call('LPUSH', q.ready, '')
  call('LTRIM', q.ready, 1, -1)
  call('ZADD', q.priority, 'XX', 0, '')
  call('ZADD', q.delayed, 'XX', 0, '')
  call('ZREM', q.delayed, '')
  call('HDEL', q.locks, '')
  call('HSET', q.locks, '', '')
  call('HDEL', q.locks, '')
end

-- The same for what its messages hold, which arrive there, or are dropped.
local function be_sure(q, to, arrive)
  need_leave(q)
  if arrive then
    need_admit(to)
    need(to.results, 'SET')
  else
    need_tell(q)
  end
  probe(q)
  probe(to)
end

local function stopwatch()
  local time = call('TIME')
  return time[1] * 1000000 + time[2]
end

-- The options of each message, and how many messages have some.
local function all_options(elements)
  local w, asking = {}, 0
  for i = 1, #elements do
    w[i] = options(elements[i]) or false
    asking = asking + (w[i] and 1 or 0)
  end
  return w, asking
end

-- Whoever waits until its time or tick has come waits no more; nor when it will
-- have had its turn in line.
local function at_once(q, element, w)
  if w and w.due > now then
    w.due, element = 0, anew(element, 'Mq-Due')
  end
  if w and w.tick and w.tick > clock(q) then
    w.tick, element = 0, anew(element, 'Mq-From-Tick')
  end
  return element
end

local plain = {}

-- On a cluster another queue may be on another node.  Messages to it wait in a hash
-- of their own queue, and arrive by arrive.lua; see outgoing.lua.  The caller says
-- so by 'HOW ID FROM QUEUE' in place of a mere 'HOW', which is returned.
local departure
local function prepare_departure(how, outgoing)
  local word, id, rest = how:match('^(%a+) (%w+)( .*)$')
  if word then
    call('HLEN', outgoing)
    need(outgoing, 'HSET')
    departure = { key = outgoing, id = id, rest = rest, n = 0 }
  end
  return word or how
end

local function depart(element)
  departure.n = departure.n + 1
  plain[#plain + 1] = string.format('%s%06d%s', departure.id, departure.n,
    departure.rest)
  plain[#plain + 1] = element
end

-- Whether messages leave the queue q.
local function leaves(q, to)
  return departure or q.ready ~= to.ready
end

local function arrive_plain(q, first)
  if #plain > 0 and departure then
    call('HSET', departure.key, unpack(plain))
  elseif #plain > 0 then
    call(first and 'RPUSH' or 'LPUSH', q.ready, unpack(plain))
  end
  plain = {}
end

-- A message comes back to be claimed.  own: it still has its group and its key in
-- this queue.  Messages that ask for nothing wait for arrive_plain().
local function arrive(q, element, w, own, first)
  if departure then
    depart(element)
    return
  elseif not w then
    plain[#plain + 1] = element
    return
  end
  arrive_plain(q, first)
  if not own then
    element, w = prepare(q, element, w)
  elseif w.key and not tonumber(w.unique) then
    lock(q, w)
  end
  admit(q, element, w, 0, '', first)
  refresh_locks(q, w)
end

-- Messages were dropped: nobody has run them, or ('done') somebody has.
local function drop(q, w, when)
  for i = 1, #w do
    if w[i] then
      leave(q, w[i], when)
      if when == 'vanish' then
        tell(q, w[i], 'purged')
      end
    end
  end
end

-- Whether anything may depend on messages of a queue that nobody has run.
local function depends(q)
  return call('EXISTS', q.locks, q.results) > 0
end
