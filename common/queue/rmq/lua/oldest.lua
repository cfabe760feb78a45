-- Look for the oldest claimable messages of queues, without their payload.
--
--   KEYS  ready..., or priority...
--   ARGV  which of the two
--   reply for each: of a list, the header of its oldest message, from the signature to
--         the newline, or nil: no message, or no header of up to 64 KiB; of a set,
--         since when its oldest message has been there, unix milliseconds as text, or
--         nil: none
--
-- In a set, the first of each score is looked at (see lib/place.lua), the lowest
-- priorities first, as those wait longest; at most 200 scores in all.  Changes nothing.

local call = redis.call

local function header(key)
  local element = call('LINDEX', key, -1)
  if not element or element:sub(1, 5) ~= '\255\0\190\190J' then
    return false
  end
  local size = element:sub(1, 65536):find('\n', 6, true)
  -- A nil would end the reply.
  return size and element:sub(1, size) or false
end

-- When a member came: a member in order, or put back to the front, says when that
-- was; a member of a tick begins with its id, the microseconds of its publishing.
local function came_us(member)
  local kind, us = member:sub(1, 1), tonumber(member:sub(2, 17))
  if kind == 'n' then
    return us
  elseif kind == 'f' then
    return us and 1e16 - us
  elseif member:sub(8, 8) == 'n' then
    return tonumber(member:sub(9, 24))
  end
  return tonumber(member:sub(8, 17), 36)
end

local left = 200

local function oldest(key)
  local us, high = nil, '+inf'
  while left > 0 do
    local score = call('ZREVRANGEBYSCORE', key, high, '-inf', 'WITHSCORES',
      'LIMIT', 0, 1)[2]
    if not score then
      break
    end
    local first = call('ZRANGEBYSCORE', key, score, score, 'LIMIT', 0, 1)[1]
    us = math.min(us or 1e16, came_us(first) or 1e16)
    left, high = left - 1, '(' .. score
  end
  return us and us < 1e16 and string.format('%.0f', us / 1000) or false
end

local reply = {}
for i, key in ipairs(KEYS) do
  reply[i] = (ARGV[1] == 'ready' and header or oldest)(key)
end
return reply
