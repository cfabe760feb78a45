-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Messages that an operator moves or drops, many in one step.  Needs place.

-- Sets a number in the header line to 0.  Quotes inside of a value have a backslash before
-- them, so the name is found nowhere else.
local function anew(element, name)
  local head = element:sub(1, 5) == '\255\0\190\190J'
    and element:sub(1, element:find('\n', 6, true) or 0) or ''
  local first, last = head:find('"' .. name:gsub('-', '%%-')
    .. '" *: *%[ *"%d+"')
  return first and head:sub(1, first - 1) .. '"' .. name .. '":["0"'
    .. element:sub(last + 1) or element
end

-- Tries, without changing anything, the commands that move messages, so that a refusal comes
-- before the first of them.  arrive: messages come into a queue; else they are dropped.
local function be_sure(q, to, arrive)
  need()
  need(to.results, unpack(arrive and { 'SET' } or { 'DEL', 'PEXPIRE' }))
  -- Before Redis 7, need() does nothing.
  if not may and arrive then
    call('SET', to.results, '1', 'XX')
  end
  for _, of in ipairs({ q, to }) do
    if not may then
      call('HGET', of.locks, '')
    end
    clock(of)
    call('LPUSH', of.ready, '')
    call('LTRIM', of.ready, 1, -1)
    call('ZADD', of.priority, 'XX', 0, '')
    call('ZREM', of.delayed, '')
    call('HDEL', of.locks, '')
    call('HSET', of.locks, '', '')
    call('HDEL', of.locks, '')
  end
end

-- Clears the time, the first tick and the batches that a message waits for, so that it can be
-- claimed now, or once it has had its turn in line.
local function at_once(q, element, w)
  if w and w.due > now then
    w.due, element = 0, anew(element, 'Mq-Due')
  end
  if w and w.tick and w.tick > clock(q) then
    w.tick, element = 0, anew(element, 'Mq-From-Tick')
  end
  if w then
    w.after = nil
  end
  return element
end

-- On a cluster another queue may be on another node.  If `how` is 'HOW ID FROM QUEUE',
-- messages wait in the hash `outgoing` of their own queue, and arrive by arrive.lua; see
-- outgoing.lua.  Returns HOW.
local departure, plain = nil, {}
local function prepare_departure(how, outgoing)
  local word, id, rest = how:match('^(%a+) (%w+)( .*)$')
  if word then
    departure = { key = outgoing, id = id, rest = rest, n = 0 }
  end
  return word or how
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

-- Notes in the key of a message when that is due.
local function note_due(q, w, due)
  if own(q, 'k', w.key, w) and not tonumber(w.unique) then
    lock(q, w, false, due > now and due)
  end
end

-- Puts a message into a queue, to be claimed, or to wait until `due`, if any.  own: the message
-- still has its group and key there.  Messages without options that wait for nothing are
-- collected for arrive_plain().
local function arrive(q, element, w, own, first, due)
  due = due and due > now and due or 0
  if departure then
    departure.n = departure.n + 1
    plain[#plain + 1] = string.format('%s%06d%s', departure.id, departure.n,
      departure.rest)
  end
  if departure or not w and due == 0 then
    plain[#plain + 1] = element
    return
  end
  arrive_plain(q, first)
  if not w then
    admit(q, element, nil, due, in_order())
    return
  elseif not own then
    element, w = prepare(q, element, w)
  elseif w.key and not tonumber(w.unique) then
    lock(q, w)
  end
  admit(q, element, w, due, due > 0 and in_order() or '', first)
  refresh_locks(q, w)
  if due > 0 then
    note_due(q, w, due)
  end
end
