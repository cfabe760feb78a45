-- Move the next messages of one place to a queue, or drop them, unseen.
--
--   KEYS  source, target (the source again for what is dropped)
--         'front' only: the heartbeat of the connection that holds them
--   ARGV  how, max messages, about how many bytes
--   how   'list': the oldest first, to the newest end of the target
--         'fresh': the same, and the attempts in their headers begin anew
--         'later': delayed ones, the first to fall due first
--         'front': unacked ones, the newest first, to the oldest end, so that
--         their order stays; only of a dead connection
--         'drop', 'droplater': they are removed
--   reply how many, or -1: the connection is alive
--
-- A crash before: all are in the source.  After: each is in the target only.

local call = redis.call
local how, max, room = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local source, target = KEYS[1], KEYS[2]

if how == 'drop' then
  local n = math.min(call('LLEN', source), max)
  call('LTRIM', source, 0, -n - 1)
  return n
elseif how == 'droplater' then
  return call('ZREMRANGEBYRANK', source, 0, max - 1)
elseif how == 'front' and call('PTTL', KEYS[3]) > 0 then
  return -1
end

-- The last one moved, as in walk.lua; nothing, or the error.
local function anew(element)
  local head = element:sub(1, element:find('\n', 6, true) or 0)
  local first, last = head:find('"Mq%-Attempt" *: *%[ *"%d+"')
  if first then
    local done = redis.pcall('LSET', target, 0, head:sub(1, first - 1) ..
      '"Mq-Attempt":["0"' .. element:sub(last + 1))
    return done.err and done
  end
end

local moved = 0
if how == 'later' then
  -- Changes nothing and needs no memory; see claim.lua.
  call('ZREM', source, '')
  while moved < max and room > 0 do
    local member = call('ZRANGE', source, 0, 0)[1]
    if not member then
      break
    end
    call('LPUSH', target, member:sub(33))
    call('ZREM', source, member)
    moved, room = moved + 1, room - #member
  end
  return moved
end

call('LTRIM', source, 0, -1)
local from, to = 'RIGHT', 'LEFT'
if how == 'front' then
  from, to = to, from
elseif how == 'fresh' then
  -- What follows may need it, when one has moved already.
  call('LTRIM', target, 0, -1)
end
while moved < max and room > 0 do
  local element = call('LMOVE', source, target, from, to)
  if not element then
    break
  end
  if how == 'fresh' and element:byte(1) == 255 and
    element:sub(1, 5) == '\255\0\190\190\74' then
    local refused = anew(element)
    if refused then
      call('LMOVE', target, source, to, from)
      return moved > 0 and moved or refused
    end
  end
  moved, room = moved + 1, room - #element
end
return moved
