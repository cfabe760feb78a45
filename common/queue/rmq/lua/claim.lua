-- Claim messages: promote what is due, then move up to ARGV[1] of the messages
-- that come first, or about ARGV[2] bytes of them, to the caller's unacked
-- list.  With 0 it only looks whether the queue is paused.
--
--   KEYS  the queue's (see lib/place.lua), unacked, the connection's heartbeat,
--         paused, rate, the connection's info, watch, idle
--   ARGV  max, bytes, and for a rate that all consumers share: messages a
--         second, and how many may be claimed at once after a rest ('' none);
--         queue; of a consumer that waits (see lib/role.lua) its name ('' it
--         does not), why it claims, '1' if changes are tracked; and if the disk is
--         short of room, how many bytes may be copied
--   reply an error if all it could claim has more bytes to be copied than that; else
--         {milliseconds until the next delayed message is due, the pause is
--         over, or the rate allows more; or -1; the role that the consumer has
--         now, and 1 more if the queue is paused; the server's clock in unix
--         milliseconds; the tick; element...}, or 0 when the heartbeat is gone: a
--         cleaner may have been there, and what came into unacked after it would
--         never be found again
--
-- A crash before: nothing has happened.  After: each element is in unacked,
-- where the connection's owner, or a cleaner once its heartbeat is gone,
-- finds it.  A promoted message is claimable.  The info counts what was claimed:
-- by that, an owner that gets no reply knows how many of its messages are new.
-- A claim that cannot be counted moves nothing.
-- A consumer that dies in its role, or woken, is missed by the others' looks.

-- include basics
-- include bucket
-- include role

local q, unacked, lease, paused, rate, info, watch, idle = queue_keys(1)
local waits = { watch = watch, idle = idle, name = ARGV[6],
  why = ARGV[7], tracked = ARGV[8], now = now }

-- On a cluster the first claim makes the info, which a cleaner that does not know it
-- leaves there for a day.
local function count_claimed(n)
  if call('HINCRBY', info, 'claimed:' .. ARGV[5], n) == 0
      and call('PTTL', info) == -1 then
    call('EXPIRE', info, 86400)
  end
end

if call('EXISTS', lease) == 0 then
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
local spare, lacks = tonumber(ARGV[9]) or math.huge, false
local wait = -1
local bucket = bucket_of(rate, ARGV[3], ARGV[4])
if bucket then
  max = math.min(max, math.floor(bucket.tokens))
end

local sorted = call('EXISTS', q.priority) == 1
local tick = clock(q)
local reply = { -1, 0, now, tick }

-- When the next one that waits for a time is due.
local function first_timed()
  local first = call('ZRANGEBYSCORE', q.delayed, '-inf', AT_TICK - 1,
    'WITHSCORES', 'LIMIT', 0, 1)
  return tonumber(first[2])
end
local function tick_waits()
  return tick > 0
    and call('ZCOUNT', q.delayed, AT_TICK, AT_TICK + tick) > 0
end
local timed = first_timed()
local due = tick_waits() or timed and timed <= now

-- How many have moved, to stand in the reply behind its first four.
local moved, sure = 0, false

-- Up to n small ones in one go; how many.  Most of the server's work for a claim is
-- here: each goes into one table only.
local function claim_small(n)
  local part, last, left = call('LRANGE', q.ready, -n, '-1'), moved + 4, room
  for i = #part, 1, -1 do
    local element = part[i]
    local size = #element
    if size > SMALL or left <= 0 then
      break
    end
    last, left = last + 1, left - size
    reply[last] = element
  end
  n = last - moved - 4
  if n > 0 then
    -- Changes nothing: what cannot be removed must not be copied.
    sure = sure or call('LTRIM', q.ready, '0', '-1')
    call('LPUSH', unacked, unpack(reply, moved + 5, last))
    call('LTRIM', q.ready, '0', -n - 1)
    moved, room = moved + n, left
  end
  return n
end

-- Moving them one by one costs the server more, but no copy of them goes to
-- its log and its replicas.  Behind a long one, nobody knows how long the next is.
local function claim_ready()
  local size = 1
  while moved < max and room > 0 do
    local n = math.min(size, max - moved)
    local small = n < 4 and 0 or claim_small(n)
    if small == 0 then
      local element = call('LMOVE', q.ready, unacked, 'RIGHT', 'LEFT')
      if not element then
        break
      end
      moved, room = moved + 1, room - #element
      reply[moved + 4] = element
      small = #element <= SMALL and n or 0
    end
    size = small < n and 1 or math.min(4 * size, 64)
  end
end

-- Claims from all that the queue has.  Most claims do not need it, and take less time than
-- it takes to define what is in it.
local function claim_any()
-- include place

  -- Few at first: nobody knows how long the next ones are.  Of those that are
  -- delayed, up to one that has to be put elsewhere.
  local function claim_sorted(set, low, high)
    local size = 1
    while moved < max and room > 0 do
      local first, batch, left = call('ZRANGEBYSCORE', set, low, high,
        'LIMIT', 0, math.min(size, max - moved)), {}, room
      for i = 1, #first do
        local element = first[i]:sub(33)
        lacks = lacks or #element > spare
        if left <= 0 or #element > spare
            or set == q.delayed and may_be_sorted(element) then
          break
        end
        spare = spare - #element
        batch[i] = element
        left = left - #element
      end
      if not batch[1] then
        break
      end
      local rank = call('ZRANK', set, first[1])
      -- Changes nothing, as above.
      call('ZREMRANGEBYRANK', set, 1, 0)
      call('LPUSH', unacked, unpack(batch))
      call('ZREMRANGEBYRANK', set, rank, rank + #batch - 1)
      for i = 1, #batch do
        reply[moved + 4 + i] = batch[i]
      end
      moved, room = moved + #batch, left
      size = math.min(2 * size, 64)
    end
  end

  if due and not sorted and call('LLEN', q.ready) == 0 then
    claim_sorted(q.delayed, '-inf', now)
  end
  if due and moved < max and room > 0 then
    -- Not all at once, when many have fallen due together.
    local _, _, left = promote(q, math.min(max - moved, 250),
      math.min(room, 262144), spare)
    lacks, spare = lacks or not left, left or 0
  end
  if call('EXISTS', q.priority) == 0 then
    claim_ready()
    return
  end
  call('LLEN', q.ready)
  claim_sorted(q.priority, '-inf', '(0')
  claim_ready()
  claim_sorted(q.priority, '(0', '+inf')
end

-- A write that is refused comes before the first move.
if max > 0 and (due or sorted or call('EXISTS', q.ready) == 1) then
  count_claimed(0)
  -- What has moved is claimed, whatever is refused behind it.
  local good, why = pcall((due or sorted) and claim_any or claim_ready)
  if not good and moved == 0 then
    error(why, 0)
  end
  for i = moved + 5, #reply do
    reply[i] = nil
  end
end
if lacks and moved == 0 then
  return redis.error_reply('no room to copy the next message')
end
if moved > 0 then
  count_claimed(moved)
end

-- Those that have a key, which may end with the claim.
local keyed = {}
if moved > 0 and call('EXISTS', q.locks) == 1 then
  for i = 5, #reply do
    keyed[#keyed + 1] = may_name(reply[i], 'Mq-Key') and reply[i] or nil
  end
end
if keyed[1] then
-- include leaving

  for i = 1, #keyed do
    local w = options(keyed[i])
    if w and w.key then
      -- Claimed is claimed, whatever becomes of the key.
      pcall(unlock, q, w, 'start')
    end
  end
end
if bucket then
  wait = bucket_take(bucket, moved)
end

reply[2] = role(waits, moved, moved >= tonumber(ARGV[1]) or room <= 0, function()
  return call('LLEN', q.ready) + call('ZCARD', q.priority)
end)

-- Each of these commands has passed before.
if due then
  timed = first_timed()
end
if due and tick_waits() then
  reply[1] = 0
elseif timed then
  reply[1] = math.max(0, math.ceil(timed - now))
end
reply[1] = math.max(reply[1], wait)
return reply
