-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Claim messages: receive the first ones for the caller's connection.
--
-- KEYS q:PLACES held lease paused rate later names watch idle [slots] [settings]
-- ARGV max bytes per_s burst queue name why tracked [connection]
-- REPLY wait_ms role now_ms tick element...
--
--   slots, max...  as in claim.lua of rmq; the queue's name is without its namespace
--   tick           0, or -1 if the queue does not exist
--   reply          0 when the lease is gone
--
-- A crash before: nothing has happened.  After: each message is hidden for as long as the
-- lease, and then anybody's again.  An id without a body is hidden, too, as node does it,
-- and removed when it is a minute old.

-- include layout
-- include bucket
-- include role

local waits = { watch = watch, idle = idle, name = name, why = why, tracked = tracked,
  now = now }

local lease_ms = tonumber(call('HGET', lease, 'lease'))
if not lease_ms then
  return 0
end
local pause = call('PTTL', paused)
local share = slots and share_of(slots, settings, lease, connection, call('HLEN', held))
local function left_behind()
  return call('ZCOUNT', q.z, '-inf', int(now))
end

-- ZREM of a missing member needs no memory; see claim.lua of rmq.
if max ~= '0' or share then
  call('ZREM', q.z, '\0')
end
if max == '0' or pause ~= -2 then
  return claim_none(waits, share, pause, left_behind, 0)
end
promote(q, later)

local CHUNK = 100
local limit, byte_budget = tonumber(max), tonumber(bytes)
local reply, wait = { -1, 0, now, 0 }, -1
local visible = int(now + lease_ms)
local bucket = bucket_of(rate, per_s, burst)
if bucket then
  limit = math.min(limit, math.floor(bucket.tokens))
end
if share then
  limit = math.min(limit, share.free)
  note_share(share, math.max(limit, 0))
end

-- last: the place in the reply of the last message received.
local now_text, last = int(now), TICK
local has_extra = call('EXISTS', q.x) == 1
local has_again = call('EXISTS', q.d) == 1
if has_again then
  need(q.d, 'HDEL')
end

-- Keeps an id without a body, unless its body will not come; returns whether.
local function keep_torn(id)
  if is_torn(q, id) then
    forget(q, { id })
    return false
  end
  call('HSETNX', q.h, id .. ':fr', now_text)
  return true
end

-- Receives messages while there is room; ids without a body are hidden only.  A claim spends
-- its time here, so the loop makes no table for a message, and no text twice.
while last < limit + TICK and byte_budget > 0 do
  local ids = call('ZRANGEBYSCORE', q.z, '-inf', now_text, 'LIMIT', 0,
    math.min(CHUNK, limit + TICK - last))
  if #ids == 0 then
    break
  end
  local rc, fields = {}, {}
  for i = 1, #ids do
    rc[i] = ids[i] .. ':rc'
    fields[2 * i - 1], fields[2 * i] = ids[i], rc[i]
  end
  local got = call('HMGET', q.h, unpack(fields))
  local extra = has_extra and call('HMGET', q.x, unpack(ids)) or {}
  local plain = not table.concat(ids):find('[^%w:]')
  local scores, runs, ours, chosen, s, r, n = {}, {}, {}, {}, 0, 0, 0
  for i = 1, #ids do
    local id, body = ids[i], got[2 * i - 1]
    -- 1e6 is MQ_ATTEMPTS_MAX.
    local before = got[2 * i] and math.min(whole(got[2 * i]) or 0, 1e6) or 0
    if body and byte_budget > 0 or not body and keep_torn(id) then
      scores[s + 1], scores[s + 2] = visible, id
      s = s + 2
    end
    if body and byte_budget > 0 then
      local times = before == 0 and '1' or int(before + 1)
      last = last + 1
      reply[last] = element(id, body, before, extra[i],
        plain and id ~= '' and #id <= 128)
      byte_budget = byte_budget - #body
      runs[r + 1], runs[r + 2] = rc[i], times
      r = r + 2
      if times == '1' then
        runs[r + 1], runs[r + 2] = id .. ':fr', now_text
        r = r + 2
      end
      ours[2 * n + 1], ours[2 * n + 2] = id, times
      n = n + 1
      chosen[n] = id
    end
  end
  -- The count of receives comes last: a receive that is refused before is no run.
  if n > 0 then
    call('HSET', held, unpack(ours))
    call('PEXPIRE', held, int(lease_ms))
    redis.pcall('HINCRBY', q.h, 'totalrecv', n)
  end
  if s > 0 then
    call('ZADD', q.z, unpack(scores))
  end
  if n > 0 then
    call('HSET', q.h, unpack(runs))
    if has_again then
      call('HDEL', q.d, unpack(chosen))
    end
  end
end
if bucket then
  wait = bucket_take(bucket, last - TICK)
end

-- The set of names is read first: the server reports changes of the keys read here, and the
-- hash changes with each message sent.
if last == TICK and call('SISMEMBER', names, queue) == 0
    and call('HEXISTS', q.h, 'vt') == 0 then
  reply[TICK] = -1
end

local full = last - TICK >= tonumber(max) or byte_budget <= 0
if share and last - TICK < limit then
  note_share(share, last - TICK)
end
reply[ROLE] = role(waits, last - TICK, full, left_behind, share and share.free - last + TICK)
local next = call('ZRANGEBYSCORE', q.z, '(' .. now_text, '+inf', 'WITHSCORES',
  'LIMIT', 0, 1)[2]
if next then
  reply[WAIT_MS] = math.max(0, math.ceil(tonumber(next) - now))
end
reply[WAIT_MS] = math.max(reply[WAIT_MS], wait)
return reply
