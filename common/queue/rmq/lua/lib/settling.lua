-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- The end of a message's stay in an unacked list, for settle.lua, which says what the
-- variables are.

-- include leaving
-- include remove

local w = options(element)
local moved = header .. element:sub(offset + 1)
local v = header == '' and w or options(moved)
local turns
local ending = ({ ack = 'done', reject = 'rejected', expire = 'expired', push = 'pushed',
  purge = 'purged' })[how]
how = how == 'purge' and 'ack' or how

-- Causes any refusal before the first change.  False: the element is not in unacked.
local function may_settle()
  -- RANK -1: the oldest of equal elements.
  if how ~= 'ack' and not call('LPOS', unacked, element, 'RANK', -1) then
    return false
  end
  -- A refused LREM would leave the message in two lists, or the mark of remove().
  if how ~= 'ack' or #element >= LONG then
    need(unacked, 'LREM', 'LSET')
  end
  if w and (w.line or w.key or w.batch) then
    need()
    call('HLEN', q.locks)
  end
  if w and w.batch and ending then
    in_batches().check(q, w)
  end
  -- If the next of the group has its turn, its place is checked, too.  A message that is
  -- pushed to its own queue may be that next one, so its turn is found later.
  if w and w.line and how == 'push' then
    check_types(q)
  elseif w and w.line and how ~= 'front' and how ~= 'again' then
    turns = turns_after(q, w)
    for i = 1, turns and #turns or 0 do
      local v = turns[i].v
      call('LLEN', q.ready)
      if v.tick or v.priority ~= 0 then
        check_types(q)
      end
    end
  end
  return true
end

-- Puts the message where it goes on.  The include is in here as acks take less time than it
-- takes to define the functions of place.lua.
local function put()
-- include place

  -- LTRIM changes nothing and needs no memory; see claim.lua.
  call('LTRIM', unacked, 0, -1)
  local delay = tonumber(ms)
  if how == 'reject' or how == 'expire' then
    call('LPUSH', to.ready, moved)
  elseif how == 'push' and not to.priority then
    call('HSET', to.ready, unique, moved)
  elseif how == 'push' then
    check_types(to)
    -- If the message comes back, no earlier result must be left.
    if v and v.reply_to then
      call('DEL', to.results .. v.reply_to)
    end
    if v then
      moved, v = prepare(to, moved, v)
    end
    admit(to, moved, v, 0, unique)
  elseif how == 'again' and delay > 0 then
    refresh_locks(q, v)
    call('ZADD', q.delayed, now + delay, unique .. moved)
  else
    refresh_locks(q, v)
    place(q, moved, v, how == 'front')
  end
  remove(unacked, element, 1)
  make_known(how == 'push' and to.priority and to or q, known)
  if how ~= 'front' and how ~= 'again' then
    leave(q, w, how == 'expire' and 'vanish' or 'done', ending, turns)
  elseif v and v.key and v.unique == 'queued' then
    lock(q, v, false, how == 'again' and delay > 0 and now + delay)
  end
end

-- Returns 1; 0: an ack did not find the element.
local function settle()
  if how ~= 'ack' then
    put()
    return 1
  end
  if remove(unacked, element, 1) == 0 then
    return 0
  end
  leave(q, w, 'done', ending, turns)
  return 1
end
