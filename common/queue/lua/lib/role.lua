-- How a consumer that has just claimed hears of the queue's next message; "Waking
-- consumers" in mq-layout(7) says how messages and watch go from one to the next.
--
--   watch   string: who is on watch
--   idle    sorted set: who is idle; score: since when, unix milliseconds.  Each
--           of them claims every ten minutes, and so comes last again
--
-- Both keys lapse, as anybody may die.  Errors are ignored; then the consumer has no role,
-- and looks for messages once a second.

-- include alive
-- include wake

local NO_ROLE, WATCH, IDLE, ASK_AGAIN = 0, 4, 8, 12
local LAPSES_MS, GONE_MS, MANY, LISTED = 300000, 1800000, 4, 1000

-- w has watch, idle, name ('': it never waits), why ('called': a key has
-- changed; 'look': the one on watch may be dead; 'own'), tracked ('1': the
-- consumer has read the keys, and nobody has changed them but itself), now.
--
--   took    how many messages it has claimed
--   full    it has room for no more
--   left    function: how many can be claimed still
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
    -- Others may have died with it.  How many are idle says how often each of them
    -- looks.
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
