-- Make delayed messages that are due ready, the oldest due first.
--
--   KEYS  delayed, ready
--   reply {how many, 1 if there are more, else 0}
--
-- At most 1000, or about 1 MiB of them, in one call.
-- A crash before: none has moved.  After: those that moved are ready only.

-- A write that needs no memory, and refuses what is no sorted set; see
-- claim.lua.
redis.call('ZREM', KEYS[1], '')
redis.call('LLEN', KEYS[2])

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local moved, room = 0, 1048576
while moved < 1000 and room > 0 do
  -- A member is 32 bytes that make it unique, then the element.
  local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, 20)
  for _, member in ipairs(due) do
    redis.call('LPUSH', KEYS[2], member:sub(33))
    redis.call('ZREM', KEYS[1], member)
    room = room - #member
  end
  moved = moved + #due
  if #due < 20 then
    return { moved, 0 }
  end
end
return { moved, 1 }
