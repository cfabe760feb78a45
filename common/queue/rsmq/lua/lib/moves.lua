-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Messages that an operator or a cleaner moves.  Needs layout.

-- Refuses keys of the wrong type, before anything has changed.  ZREM of a missing member needs
-- no memory, and lets later writes pass; see claim.lua.
local function probe(q)
  check_types(q)
  call('ZREM', q.z, '\0')
end

-- Causes any refusal before the first message is dropped, or moves.  A message is there again
-- if only its body is left: a cleaner takes that for a message that lacks its member.
local function be_sure(q, to, moves)
  need(q.h, 'ZREM', 'HDEL')
  if moves then
    need(to.h, 'HGET', 'HSET', 'ZADD')
  end
  probe(to)
  probe(q)
end

-- Makes the queue that messages of q go to, unless it exists.
local function create_as(q, to, names, name)
  if call('HEXISTS', to.h, 'vt') == 0 then
    local has = call('HMGET', q.h, 'vt', 'maxsize')
    create(to.h, names, name, has[1], 0, has[2])
  end
end

-- The score of a message that can be received now, behind messages that moved before it, even
-- in the same millisecond; a millisecond ago, since receivers' clocks have no fractions.
local serial = 0
local function score_next(extra)
  serial = serial + 1
  return score_since((now_us + serial) / 1000 - 1, extra)
end

-- Moves a message m of read() to another queue, to be received behind others of its priority,
-- with the headers m.extra and `runs` receives.  is_back: the message had been sent there.
-- Returns false if the queue has a message with that id.
local function hand_over(q, to, m, runs, is_back)
  if call('HEXISTS', to.h, m.id) == 1 or call('ZSCORE', to.z, m.id) then
    return false
  end
  call('HSET', to.h, m.id, m.body)
  if runs > 0 then
    call('HSET', to.h, m.id .. ':rc', runs, m.id .. ':fr',
      call('HGET', q.h, m.id .. ':fr') or int(now))
  end
  if m.extra and m.extra ~= '' then
    call('HSET', to.x, m.id, m.extra)
  end
  call('ZADD', to.z, score_next(m.extra), m.id)
  if not is_back then
    redis.pcall('HINCRBY', to.h, 'totalsent', 1)
  end
  forget(q, { m.id })
  return true
end

-- Takes messages out of a queue; returns how many.  how: 'move', to be received at once;
-- 'fresh', likewise, with no receives; 'home', likewise, to the queue where they were sent;
-- 'back', with the last receive undone; 'drop', nowhere.
local function take(q, to, ids, how)
  if how == 'drop' then
    forget(q, ids)
    return #ids
  end
  if q.z == to.z then
    for _, id in ipairs(ids) do
      call('HDEL', q.d, id)
      if how == 'fresh' then
        call('HDEL', q.h, id .. ':rc', id .. ':fr')
      end
      if how == 'back' then
        put_back(q, id)
      else
        call('ZADD', q.z, 'XX', score_next(call('HGET', q.x, id)), id)
      end
    end
    return #ids
  end
  local n = 0
  for _, m in ipairs(read(q, ids)) do
    local runs = (how == 'fresh' or how == 'home') and 0
      or m.runs - (how == 'back' and 1 or 0)
    if m.body and hand_over(q, to, m, runs, how == 'home') then
      n = n + 1
    end
  end
  return n
end
