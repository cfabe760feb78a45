-- Claim messages: promote what is due, then move up to ARGV[1] of the messages
-- that come first, or about ARGV[2] bytes of them, to the caller's unacked
-- list.  With 0 it only looks whether the queue is paused.
--
--   KEYS  the queue's (see lib/place.lua), unacked, the connection's heartbeat,
--         paused, rate, the connection's info, large, watch, idle; for 'move'
--         moving, moving-alone
--   ARGV  max, bytes, and for a rate that all consumers share: messages a
--         second, and how many may be claimed at once after a rest ('' none);
--         queue; of a consumer that waits (see lib/role.lua) its name ('' it
--         does not), why it claims, '1' if changes are tracked; 'look', 'move' or
--         '', what to do while the queue may have large messages
--   reply {milliseconds until the next delayed message is due, the pause is
--         over, or the rate allows more; or -1; the role that the consumer has
--         now, and 1 more if the queue is paused, 2 if what is in ready was left
--         to 'move', 16 if a large message is due; the server's clock in unix
--         milliseconds; the tick; element...}, or 0 when the heartbeat is gone: a cleaner may have been there, and what came into unacked after
--         it would never be found again
--
-- A script copies a message five times, which takes the server half a second for
-- 100 MB.  So with 'look' the script leaves the ready list alone while the queue
-- may have such messages, and the caller repeats the claim with 'move', as the first
-- command of a transaction.  Then the script renames ready to moving; LMOVEs,
-- max of them, claim from there, or find no such list; and moving is renamed to
-- ready.  If the message is the only one of both lists, nothing copies it: ready
-- becomes moving-alone, is read, and is renamed to unacked.  A large message that
-- is due is made ready between the two, by lead.lua.
--
-- A crash before: nothing has happened.  After: each element is in unacked,
-- where the connection's owner, or a cleaner once its heartbeat is gone,
-- finds it.  A promoted message is claimable.  The info counts what was claimed:
-- by that, an owner that gets no reply knows how many of its messages are new.
-- A consumer that dies in its role, or woken, is missed by the others' looks.

-- include basics
-- include bucket
-- include role

local q, unacked, paused, rate = queue_keys(1), KEYS[7], KEYS[9], KEYS[10]
local waits = { watch = KEYS[13], idle = KEYS[14], name = ARGV[6],
  why = ARGV[7], tracked = ARGV[8], now = now }

-- Claimed is claimed, whether that can be counted or not.  On a cluster the first one
-- makes the info, which a cleaner that does not know it leaves there for a day.
local function count_claimed(n)
  if redis.pcall('HINCRBY', KEYS[11], 'claimed:' .. ARGV[5], n) == n
      and redis.pcall('PTTL', KEYS[11]) == -1 then
    redis.pcall('EXPIRE', KEYS[11], 86400)
  end
end

if call('EXISTS', KEYS[8]) == 0 then
  return 0
end
local pause = call('PTTL', paused)
if ARGV[1] == '0' then
  return { pause == -2 and -1 or pause, pause == -2 and 0 or 1, now, clock(q) }
end

-- A write that needs no memory.  After it, Redis lets the rest pass even when
-- memory is full: claiming and acking is what makes room again.
call('ZREM', q.delayed, '')
if pause ~= -2 then
  return { pause, 1 + role(waits, 0, false), now, clock(q) }
end

local SMALL = 512
local max, room = tonumber(ARGV[1]), tonumber(ARGV[2])
local reply, wait = { -1, 0, now, 0 }, -1
local bucket = bucket_of(rate, ARGV[3], ARGV[4])
if bucket then
  max = math.min(max, math.floor(bucket.tokens))
end

-- One more key is cheaper than one more command.
local unusual = call('EXISTS', q.priority, KEYS[12]) > 0
local tick = clock(q)

-- Whether the first delayed one is large, and of those that wait for a time, when
-- the next one is due, or may be.  From the size of the first, Redis estimates that
-- of all.  No command has a score without its member, and ZCOUNT compares those
-- that it counts with themselves: so it counts few, and large keeps the time.
local function look_at_large()
  local n = call('ZCARD', q.delayed)
  local size = n > 0
    and redis.pcall('MEMORY', 'USAGE', q.delayed, 'SAMPLES', 1)
  if type(size) ~= 'number' or size / n < LARGE then
    return false
  end
  local function is_till(score)
    return call('ZCOUNT', q.delayed, '-inf', score) > 0
  end
  if is_till(now) then
    return true, now
  end
  local known = tonumber((redis.pcall('GET', KEYS[12])))
  if known and known > now and not is_till('(' .. known) then
    return true, known
  end
  local step = 1
  while not is_till(now + step) do
    step = 2 * step
    if step > AT_TICK then
      return true
    end
  end
  known = now + math.floor(step / 2) + 1
  redis.pcall('SET', KEYS[12], string.format('%.0f', known), 'EX', 604800)
  return true, known
end

-- When the next one that waits for a time is due, or may be, and whether it is
-- large.
local function first_timed()
  local large, at
  if unusual then
    large, at = look_at_large()
  end
  if large then
    return at, true
  end
  local first = call('ZRANGEBYSCORE', q.delayed, '-inf', AT_TICK - 1,
    'WITHSCORES', 'LIMIT', 0, 1)
  large = first[1] and #first[1] >= LARGE
  if large then
    note_large(q)
  end
  return tonumber(first[2]), large
end
local function tick_waits()
  return tick > 0
    and call('ZCOUNT', q.delayed, AT_TICK, AT_TICK + tick) > 0
end
local timed, large = first_timed()
local due = timed and timed <= now or tick_waits()
if ARGV[9] == 'look' and large and timed and timed <= now then
  return { 0, 18, now, tick }
end

local function claim(element)
  reply[#reply + 1] = element
  room = room - #element
end

-- Up to n small ones in one go; how many.
local function claim_small(n)
  local part, batch = call('LRANGE', q.ready, -n, -1), {}
  for i = #part, 1, -1 do
    if #part[i] > SMALL or room <= 0 then
      break
    end
    batch[#batch + 1] = part[i]
    claim(part[i])
  end
  if #batch > 0 then
    -- Changes nothing: what cannot be removed must not be copied.
    call('LTRIM', q.ready, 0, -1)
    call('LPUSH', unacked, unpack(batch))
    call('LTRIM', q.ready, 0, -#batch - 1)
  end
  return #batch
end

-- Moving them one by one costs the server more, but no copy of them goes to
-- its log and its replicas.
local function claim_ready()
  local size = 1
  while #reply < max + 4 and room > 0 do
    local n = math.min(size, max + 4 - #reply)
    if n < 4 or claim_small(n) == 0 then
      local element = call('LMOVE', q.ready, unacked, 'RIGHT', 'LEFT')
      if not element then
        break
      end
      claim(element)
      size = #element > SMALL and 1 or size
    end
    size = math.min(2 * size, 64)
  end
end

local more = false

-- Claims from all that the queue has.  Returns how many were left to 'move', or
-- false.  Most claims need neither this function nor the next, and take less time
-- than it takes to define what is in them.
local function claim_any()
-- include place

  -- Few at first: nobody knows how long the next ones are.  Of those that are
  -- delayed, up to one that has to be put elsewhere.
  local function claim_sorted(set, low, high)
    need(set, 'ZRANK', 'ZREMRANGEBYRANK')
    local size = 1
    while #reply < max + 4 and room > 0 do
      local first, batch = call('ZRANGEBYSCORE', set, low, high,
        'LIMIT', 0, math.min(size, max + 4 - #reply)), {}
      for i = 1, #first do
        local element = first[i]:sub(33)
        if room <= 0 or set == q.delayed and may_be_sorted(element) then
          break
        end
        batch[i] = element
        claim(element)
      end
      if not batch[1] then
        break
      end
      local rank = call('ZRANK', set, first[1])
      call('LPUSH', unacked, unpack(batch))
      call('ZREMRANGEBYRANK', set, rank, rank + #batch - 1)
      size = math.min(2 * size, 64)
    end
  end

  -- What is checked here passes in the commands behind this script, too.
  local function hand_over(n)
    call('LTRIM', unacked, 0, -1)
    call('LINDEX', KEYS[16], 0)
    need(KEYS[15], 'LMOVE')
    local alone = n == 1 and call('EXISTS', unacked) == 0
    call('RENAME', q.ready, KEYS[alone and 16 or 15])
    if n <= max and not large then
      call('DEL', KEYS[12])
    end
    count_claimed(math.min(n, max))
    return n > max
  end

  -- Whether the messages in ready are not for this script.  Those whose keys end
  -- with the claim are, as nobody else reads their headers.
  local function leave_ready()
    if ARGV[9] == '' or call('EXISTS', KEYS[12]) == 0
        or call('EXISTS', q.locks) == 1 then
      return false
    end
    local n = call('LLEN', q.ready)
    if n == 0 and not large then
      call('DEL', KEYS[12])
    end
    return n > 0 and max > 0 and n
  end

  -- A large one would be read twice.
  if due and not unusual and not large and call('LLEN', q.ready) == 0 then
    claim_sorted(q.delayed, '-inf', now)
  end
  local leave_due = large and ARGV[9] == 'move'
  if due and not leave_due and #reply < max + 4 and room > 0 then
    -- Not all at once, when many have fallen due together.
    promote(q, math.min(max + 4 - #reply, 250), math.min(room, 262144))
    unusual = unusual or call('EXISTS', KEYS[12]) == 1
  end
  local sorted = (unusual or due) and call('ZCARD', q.priority) > 0
  if sorted then
    call('LLEN', q.ready)
    claim_sorted(q.priority, '-inf', '(0')
  end
  local left = unusual and leave_ready()
  if left then
    reply[2] = 2
    if ARGV[9] == 'move' and #reply == 4 then
      more = hand_over(left)
      wait = bucket and bucket_take(bucket, 1) or wait
    end
    return left
  end
  claim_ready()
  if sorted then
    claim_sorted(q.priority, '(0', '+inf')
  end
  return false
end

-- Frees the keys that end with the claim.
local function free_keys()
-- include leaving

  for i = 5, #reply do
    local w = may_name(reply[i], 'Mq-Key') and options(reply[i])
    if w and w.key then
      -- Claimed is claimed, whatever becomes of the key.
      pcall(unlock, q, w, 'start')
    end
  end
end

local left = false
if due or unusual then
  left = claim_any()
else
  claim_ready()
end
for i = 5, room <= 0 and #reply or 0 do
  if #reply[i] >= LARGE then
    note_large(q)
  end
end

if #reply > 4 and call('EXISTS', q.locks) == 1 then
  for i = 5, #reply do
    if may_name(reply[i], 'Mq-Key') then
      free_keys()
      break
    end
  end
end
if bucket and (not left or #reply > 4) then
  wait = bucket_take(bucket, #reply - 4)
end
if #reply > 4 then
  count_claimed(#reply - 4)
end

local took = #reply - 4
local moved = left and took == 0
if moved and ARGV[9] == 'move' then
  took = math.min(left, max)
end
if took > 0 or not moved then
  local full = took >= tonumber(ARGV[1]) or room <= 0 or left and not moved
  reply[2] = reply[2] + role(waits, took, full, function()
    return call('LLEN', q.ready) + call('ZCARD', q.priority)
      + (moved and left - took or 0)
  end)
end

-- Each of these commands has passed before.
reply[4] = tick
if due then
  timed = first_timed()
end
if due and tick_waits() then
  reply[1] = 0
elseif timed then
  reply[1] = math.max(0, math.ceil(timed - now))
end
if more then
  reply[1] = 0
end
reply[1] = math.max(reply[1], wait)
return reply
