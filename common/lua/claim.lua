-- Claim messages: promote what is due, then move up to ARGV[1] of the oldest
-- ready messages, or about ARGV[2] bytes of them, to the caller's unacked list.
-- With 0 it only looks whether the queue is paused, and so CLIENT TRACKING
-- tells of that and of nothing else.
--
--   KEYS  ready, unacked, delayed, the connection's heartbeat, paused
--   reply {milliseconds until the next delayed message is due, or the pause is
--         over, or -1; 1 if the queue is paused, else 0; element...}, or 0 when
--         the heartbeat is gone: a cleaner may have been there, and what came
--         into unacked after it would never be found again
--
-- A crash before: nothing has happened.  After: each element is in unacked,
-- where the connection's owner, or a cleaner once its heartbeat is gone,
-- finds it.  A promoted message is in ready.

if redis.call('EXISTS', KEYS[4]) == 0 then
  return 0
end
local pause = redis.call('PTTL', KEYS[5])
if pause ~= -2 then
  return { pause, 1 }
end
if ARGV[1] == '0' then
  return { -1, 0 }
end

-- A write that needs no memory.  After it, Redis lets the rest pass even when
-- memory is full: claiming and acking is what makes room again.
redis.call('ZREM', KEYS[3], '')

local max, room = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- A delayed member is 32 bytes that make it unique, then the element.
local due = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, max)
for _, member in ipairs(due) do
  redis.call('LPUSH', KEYS[1], member:sub(33))
  redis.call('ZREM', KEYS[3], member)
end

local reply = { -1, 0 }
while #reply < max + 2 and room > 0 do
  local element = redis.call('LMOVE', KEYS[1], KEYS[2], 'RIGHT', 'LEFT')
  if not element then
    break
  end
  reply[#reply + 1] = element
  room = room - #element
end

-- These reads come last: under CLIENT TRACKING they are what the caller will
-- be told about when it changes, and a write forgets an earlier read.
redis.call('EXISTS', KEYS[5])
redis.call('LLEN', KEYS[1])
local head = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')
if head[2] then
  reply[1] = math.max(0, math.ceil(head[2] - now))
end
return reply
