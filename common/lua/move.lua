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
--   reply how many; with max 0, how many there are; -1: the connection is alive
--
-- A crash before: all are in the source.  After: each is in the target only.

local call, byte = redis.call, string.byte
local how, max, room = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local source, target, fresh = KEYS[1], KEYS[2], how == 'fresh'

if how == 'front' and call('PTTL', KEYS[3]) > 0 then
  return -1
elseif max == 0 then
  return call(how:find('later', 1, true) and 'ZCARD' or 'LLEN', source)
elseif how == 'drop' then
  local n = math.min(call('LLEN', source), max)
  call('LTRIM', source, 0, -n - 1)
  return n
elseif how == 'droplater' then
  return call('ZREMRANGEBYRANK', source, 0, max - 1)
end

-- As in walk.lua.
local function anew(element)
  if element:sub(1, 5) ~= '\255\0\190\190\74' then
    return element
  end
  local head = element:sub(1, element:find('\n', 6, true) or 0)
  local first, last = head:find('"Mq%-Attempt" *: *%[ *"%d+"')
  if not first then
    return element
  end
  return head:sub(1, first - 1) .. '"Mq-Attempt":["0"' .. element:sub(last + 1)
end

-- The next n as they are to be in the target, the first to go first; and as
-- they are in the source, if that matters.
local function next_ones(n)
  local part, new = nil, {}
  if how == 'later' then
    part = call('ZRANGE', source, 0, n - 1)
    for i = 1, #part do
      new[i] = part[i]:sub(33)
    end
  elseif how == 'front' then
    new = call('LRANGE', source, 0, n - 1)
  else
    part = call('LRANGE', source, -n, -1)
    n = #part
    for i = 1, n do
      local element = part[n - i + 1]
      new[i] = fresh and byte(element) == 255 and anew(element) or element
    end
  end
  return new, part
end

-- These change nothing and need no memory; see claim.lua.  And what cannot be
-- removed must not be pushed.
if how == 'later' then
  call('ZREM', source, '')
else
  call('LTRIM', source, 0, -1)
end

local moved, size = 0, 1
while moved < max and room > 0 do
  local new, old = next_ones(math.min(size, max - moved))
  local n = #new
  if n == 0 then
    break
  end
  call(how == 'front' and 'RPUSH' or 'LPUSH', target, unpack(new))
  if how == 'later' then
    call('ZREM', source, unpack(old))
  elseif how == 'front' then
    call('LTRIM', source, n, -1)
  else
    call('LTRIM', source, 0, -n - 1)
  end
  moved = moved + n
  for i = 1, n do
    room = room - #new[i]
  end
  -- Not more: nobody knows how long the next ones are.
  size = math.min(2 * size, 64)
end
return moved
