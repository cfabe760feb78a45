-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- How a consumer that has just claimed hears of the queue's next message; "Waking
-- consumers" in mq-layout(7) says how messages and watch go from one to the next.
--
--   watch   string: the consumer on watch
--   idle    sorted set: idle consumers; score: since when, unix milliseconds.  An idle
--           consumer claims every ten minutes, and so comes last again
--
-- Both keys lapse, since consumers may die.  If a command fails, the consumer has no role,
-- and looks for messages once a second.

-- include alive
-- include wake
-- include shared

local NO_ROLE, WATCH, IDLE, ASK_AGAIN = 0, 4, 8, 12
local LAPSES_MS, GONE_MS, MANY, LISTED = 300000, 1800000, 4, 1000
local NOBODY_MS = 5000

-- Lists an idle consumer; returns its role.
local function rest(w)
  if type(redis.pcall('ZADD', w.idle, w.now, w.name)) ~= 'number' then
    return NO_ROLE
  end
  redis.pcall('ZREMRANGEBYSCORE', w.idle, '-inf', w.now - GONE_MS)
  redis.pcall('PEXPIRE', w.idle, LAPSES_MS)
  return IDLE
end

-- w has watch, idle, name ('': the consumer never waits), why ('called': a key has
-- changed; 'look': the consumer on watch may be dead; 'own'), tracked ('1': the
-- consumer has read the keys, and only that consumer has changed them since), now.
--
--   took    number of messages claimed now
--   full    the consumer has no more room
--   left    function: number of messages still claimable
--   free    number of slots left that consumers share; nil: there is no limit.  Whoever frees
--           one claims again, so until then nobody watches, and nobody is woken
local function role(w, took, full, left, free)
  if w.name == '' then
    return NO_ROLE
  end
  redis.pcall('ZREM', w.idle, w.name)
  local holder = redis.pcall('GET', w.watch)
  if type(holder) == 'table' then
    return NO_ROLE
  end
  if free == 0 then
    if holder ~= NOBODY then
      redis.pcall('PSETEX', w.watch, NOBODY_MS, NOBODY)
    end
    return full and NO_ROLE or rest(w)
  elseif holder == NOBODY then
    redis.pcall('UNLINK', w.watch)
    holder = false
  end
  if holder and holder ~= w.name and w.why == 'look'
      and not is_alive(holder) then
    redis.pcall('UNLINK', w.watch)
    holder = false
    -- Idle consumers of the same host may be dead, too; ZCARD of idle sets how often each
    -- consumer looks.
    local names = redis.pcall('ZRANGEBYSCORE', w.idle, '-inf', '+inf', 'LIMIT', 0,
      LISTED)
    for _, name in ipairs(names) do
      if not is_alive(name) then
        redis.pcall('ZREM', w.idle, name)
      end
    end
  end
  local mine = not holder or holder == w.name or w.why == 'look' and took > 0
  if full then
    if holder and mine then
      redis.pcall('UNLINK', w.watch)
    end
    local n, known, more = mine and wake(w.idle, 1) or 0, pcall(left)
    more = known and math.min(more, free or more) or 0
    if n > 0 or not mine then
      wake(w.idle, math.min(MANY, more) - n)
    end
    return mine and n + more == 0 and ASK_AGAIN or NO_ROLE
  end
  if mine and took > 0 and wake(w.idle, 1) > 0 then
    if holder then
      redis.pcall('UNLINK', w.watch)
    end
    mine = false
  end
  if not mine then
    return rest(w)
  elseif w.tracked ~= '1' or took > 0 then
    return ASK_AGAIN
  end
  if holder ~= w.name or w.why == 'own' then
    local set = redis.pcall('PSETEX', w.watch, LAPSES_MS, w.name)
    if set.err then
      return NO_ROLE
    end
    redis.pcall('PEXPIRE', w.idle, LAPSES_MS)
  end
  return WATCH
end

-- The reply of a claim that takes nothing: a claim of none, or of a queue that is paused for
-- `pause` milliseconds (-1: until resumed; -2: is not).
local function claim_none(waits, share, pause, left, tick)
  local part = pause == -2 and 0 or 1
  if share then
    note_share(share, 0)
  end
  if max ~= '0' then
    part = part + role(waits, 0, false)
  elseif share and pause == -2 then
    role(waits, 0, true, left, share.free)
  end
  return { pause == -2 and -1 or pause, part, now, tick }
end
