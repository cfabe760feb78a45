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

local NO_ROLE, WATCH, IDLE, ASK_AGAIN = 0, 4, 8, 12
local LAPSES_MS, GONE_MS, MANY, LISTED = 300000, 1800000, 4, 1000

-- w has watch, idle, name ('': the consumer never waits), why ('called': a key has
-- changed; 'look': the consumer on watch may be dead; 'own'), tracked ('1': the
-- consumer has read the keys, and only that consumer has changed them since), now.
--
--   took    number of messages claimed now
--   full    the consumer has no more room
--   left    function: number of messages still claimable
local function role(w, took, full, left)
  if w.name == '' then
    return NO_ROLE
  end
  redis.pcall('ZREM', w.idle, w.name)
  local holder = redis.pcall('GET', w.watch)
  if type(holder) == 'table' then
    return NO_ROLE
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
    local n, known, rest = mine and wake(w.idle, 1) or 0, pcall(left)
    rest = known and rest or 0
    if n > 0 or not mine then
      wake(w.idle, math.min(MANY, rest) - n)
    end
    return mine and n + rest == 0 and ASK_AGAIN or NO_ROLE
  end
  if mine and took > 0 and wake(w.idle, 1) > 0 then
    if holder then
      redis.pcall('UNLINK', w.watch)
    end
    mine = false
  end
  if not mine then
    if type(redis.pcall('ZADD', w.idle, w.now, w.name)) ~= 'number' then
      return NO_ROLE
    end
    redis.pcall('ZREMRANGEBYSCORE', w.idle, '-inf', w.now - GONE_MS)
    redis.pcall('PEXPIRE', w.idle, LAPSES_MS)
    return IDLE
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
