-- One step of taking one queue from a dead connection.
--
--   KEYS  unacked, ready, rejected, the connection's heartbeat, consumers, the
--         connection's queues, rmq::queues, rmq::connections; then, of one of
--         ours, its info, and what runs there
--   ARGV  queue, connection, how many of the oldest messages may have been
--         running (keep), bytes of headers to show, where to begin showing (see
--         below), then for each message to settle: its header, its new header,
--         where it goes ('ready' or 'rejected')
--   reply {moved, returned, rejected, left, 1 if the connection was unlisted,
--         header...}, or left -1 and nothing done when the heartbeat is there
--         again
--
-- First the messages behind the `keep` oldest go back to the front of ready,
-- newest first, so that the oldest ends up in front; then those to settle,
-- which must be the newest that are left, in that order: they are known by
-- their headers only, since only those are replaced.  When none is left, the
-- connection is said not to have the queue any more, and is forgotten if that
-- was its last.  Else the headers of the newest that are left are shown: '' is
-- none, "\n" one that cannot be read.
--
-- If where to begin is not '', nothing changes, and the headers of the `keep`
-- oldest are shown from that index on, newest first.
--
-- Bounded: at most 500 messages or about 1 MiB (but 8 in any case) a call.
-- A crash between two calls leaves connection and queue listed, and the rest
-- of the messages unacked: the next cleaner goes on from there.

local unacked, ready, rejected = KEYS[1], KEYS[2], KEYS[3]
local keep, show = tonumber(ARGV[3]), tonumber(ARGV[4])

if redis.call('PTTL', KEYS[4]) > 0 then
  return { 0, 0, 0, -1, 0 }
end

local function header(element)
  if element:sub(1, 5) ~= '\255\0\190\190J' then
    return ''
  end
  local stop = element:find('\n', 6, true)
  if not stop or stop > 262144 then
    return '\n'
  end
  return element:sub(1, stop)
end

local dry = ARGV[5] ~= ''
local left = redis.call('LLEN', unacked)
-- These refuse what is no list before anything has moved.  (LMOVE does so, too.)
if keep > 0 or dry and left > 0 then
  redis.call('LLEN', ready)
end
if keep > 0 then
  redis.call('LLEN', rejected)
end

local from = 0
local moved, back, out, unlisted = 0, 0, 0, 0
if dry then
  from = math.max(0, left - keep) + ARGV[5]
else
  -- Changes nothing and needs no memory; see claim.lua.
  redis.call('LTRIM', unacked, 0, -1)
  redis.call('SADD', KEYS[7], ARGV[1])
  -- A few are quicker in one go.  (LTRIM has passed once, so it cannot be
  -- refused any more, which would leave them in both lists.)
  if keep == 0 and left > 0 and left <= 8 then
    redis.call('RPUSH', ready, unpack(redis.call('LRANGE', unacked, 0, -1)))
    redis.call('LTRIM', unacked, 1, 0)
    moved, left = left, 0
  end
  local room = 1048576
  while left > keep and moved < 500 and room > 0 do
    room = room - #redis.call('LMOVE', unacked, ready, 'LEFT', 'RIGHT')
    moved = moved + 1
    left = left - 1
  end
  for i = 6, #ARGV, 3 do
    -- Another cleaner may have been first.
    local element = left > 0 and left <= keep
      and redis.call('LINDEX', unacked, 0)
    if not element or header(element) ~= ARGV[i] then
      break
    end
    if ARGV[i] == '\n' then
      redis.call('LMOVE', unacked, ready, 'LEFT', 'RIGHT')
      back = back + 1
    else
      element = ARGV[i + 1] .. element:sub(#ARGV[i] + 1)
      if ARGV[i + 2] == 'rejected' then
        redis.call('LPUSH', rejected, element)
        out = out + 1
      else
        redis.call('RPUSH', ready, element)
        back = back + 1
      end
      redis.call('LTRIM', unacked, 1, -1)
    end
    left = left - 1
  end
  if left == 0 then
    redis.call('DEL', KEYS[5])
    redis.call('SREM', KEYS[6], ARGV[1])
    if redis.call('SCARD', KEYS[6]) == 0 then
      unlisted = redis.call('SREM', KEYS[8], ARGV[2])
      if KEYS[9] then
        redis.call('DEL', KEYS[9], KEYS[10])
      end
    end
  end
end

local reply = { moved, back, out, left, unlisted }
local room = 1048576
while show > 0 and room > 0 and #reply < 69 and from < left
    and (left <= keep or dry) do
  local element = redis.call('LINDEX', unacked, from)
  reply[#reply + 1] = header(element)
  show = show - #reply[#reply]
  room = room - #element
  from = from + 1
end
return reply
