-- Claim messages: receive up to ARGV[1] of those that come first, or about
-- ARGV[2] bytes of them, for the caller's connection.  With 0 it only looks
-- whether the queue is paused.
--
--   KEYS  home (see lib/rsmq.lua), what the connection holds, its lease, paused,
--         rate
--   ARGV  max, bytes, and for a rate that all consumers share: messages a
--         second, and how many may be claimed at once after a rest ('' none)
--   reply as claim.lua's: {milliseconds until more can be received, or the
--         pause is over, or the rate allows more; or -1; 1 if the queue is
--         paused, else 0; the server's clock in unix milliseconds; 0;
--         element...}, or 0 when the lease is gone
--
-- A crash before: nothing has happened.  After: each of them is hidden for as
-- long as the lease, and then anybody's again.  A member without a body is
-- hidden, too, as node would; it is for mq-clean.

-- include rsmq
-- include bucket

local q, held, lease, paused, rate = home(1), KEYS[5], KEYS[6], KEYS[7], KEYS[8]

local lease_ms = tonumber(call('HGET', lease, 'lease'))
if not lease_ms then
  return 0
end
local pause = call('PTTL', paused)
if pause ~= -2 then
  return { pause, 1, now, 0 }
end
if ARGV[1] == '0' then
  return { -1, 0, now, 0 }
end

-- A write that needs no memory; see claim.lua.
call('ZREM', q.z, '')

local CHUNK = 100
local max, room = tonumber(ARGV[1]), tonumber(ARGV[2])
local reply, wait = { -1, 0, now, 0 }, -1
local visible = int(now + lease_ms)
local bucket = bucket_of(rate, ARGV[3], ARGV[4])
if bucket then
  max = math.min(max, math.floor(bucket.tokens))
end

-- Of a chunk, those that there is room for, and those without a body.
local function choose(list)
  local chosen, empty = {}, {}
  for i = 1, #list do
    if not list[i].body then
      empty[#empty + 1] = list[i].id
    elseif room > 0 then
      chosen[#chosen + 1] = list[i]
      room = room - #list[i].body
    end
  end
  return chosen, empty
end

local function receive(chosen)
  local scores, runs, ours, ids = {}, {}, {}, {}
  for i = 1, #chosen do
    local m = chosen[i]
    reply[#reply + 1] = element(m.id, m.body, m.runs, m.extra)
    ids[i] = m.id
    scores[#scores + 1] = visible
    scores[#scores + 1] = m.id
    runs[#runs + 1] = m.id .. ':rc'
    runs[#runs + 1] = m.runs + 1
    if m.runs == 0 then
      runs[#runs + 1] = m.id .. ':fr'
      runs[#runs + 1] = int(now)
    end
    ours[#ours + 1] = m.id
    ours[#ours + 1] = m.runs + 1
  end
  call('ZADD', q.z, unpack(scores))
  call('HSET', q.h, unpack(runs))
  call('HINCRBY', q.h, 'totalrecv', #chosen)
  call('HSET', held, unpack(ours))
  call('SREM', q.d, unpack(ids))
end

while #reply < max + 4 and room > 0 do
  local ids = call('ZRANGEBYSCORE', q.z, '-inf', int(now), 'LIMIT', 0,
    math.min(CHUNK, max + 4 - #reply))
  if #ids == 0 then
    break
  end
  local chosen, empty = choose(read(q, ids))
  for i = 1, #empty do
    call('ZADD', q.z, visible, empty[i])
  end
  if #chosen > 0 then
    receive(chosen)
  end
end
if #reply > 4 then
  call('PEXPIRE', held, int(lease_ms))
end
if bucket then
  wait = bucket_take(bucket, #reply - 4)
end

-- These reads come last; see claim.lua.
call('EXISTS', paused)
local next = call('ZRANGEBYSCORE', q.z, '(' .. int(now), '+inf', 'WITHSCORES',
  'LIMIT', 0, 1)[2]
if next then
  reply[1] = math.max(0, math.ceil(tonumber(next) - now))
end
reply[1] = math.max(reply[1], wait)
return reply
