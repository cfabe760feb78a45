-- One step of a walk through delayed messages, the first to fall due first.
--
--   KEYS  delayed, then for 'take', if it is not to be dropped, target
--   ARGV  'read', from, anchor, its due time, max messages, about how many
--         bytes, needle
--         'skip', the same: begins behind the first messages, from of them
--         'take', from, anchor, its due time, member...
--
-- from messages are behind the walk, and the anchor is the last of them.
-- 'read' looks at the next slice.
--   reply {from, how many were behind before it; how many it looked at; how
--         many follow; the new anchor; its due time; member, due time...},
--         those with the needle in them only
--
-- 'take' moves the members that are given, if they are still there, to the
-- newest end of target (or nowhere), without the 32 bytes in front.
--   reply {how many were moved, from, the new anchor, its due time}
--
-- A crash before: all are delayed.  After: each is in the target only.  What
-- may be refused comes first, so a refusal changes nothing.

local call = redis.call
local key, from, anchor, due = KEYS[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]

local function locate()
  if from == 0 or call('ZRANGE', key, from - 1, from - 1)[1] == anchor then
    return from
  end
  local rank = call('ZRANK', key, anchor)
  return rank and rank + 1 or call('ZCOUNT', key, '-inf', '(' .. due)
end

local function read(max, room, needle)
  local reply, looked, size = { from, 0, 0, anchor, due }, 0, 1
  local left = call('ZCARD', key) - from
  while looked < math.min(max, left) and room > 0 do
    local n, behind = math.min(size, max - looked), from + looked
    local part = call('ZRANGE', key, behind, behind + n - 1, 'WITHSCORES')
    for i = 1, #part, 2 do
      if room <= 0 then
        break
      end
      looked, room = looked + 1, room - #part[i]
      reply[4], reply[5] = part[i], part[i + 1]
      if needle == '' or part[i]:find(needle, 33, true) then
        reply[#reply + 1] = part[i]
        reply[#reply + 1] = part[i + 1]
      end
    end
    size = math.min(2 * size, 32)
  end
  reply[2] = looked
  reply[3] = left - looked
  return reply
end

local function take()
  local taken = 0
  -- Changes nothing and needs no memory; see claim.lua.
  call('ZREM', key, '')
  for i = 5, #ARGV do
    if call('ZSCORE', key, ARGV[i]) then
      if KEYS[2] then
        call('LPUSH', KEYS[2], ARGV[i]:sub(33))
      end
      call('ZREM', key, ARGV[i])
      taken = taken + 1
    end
  end
  from = from - taken
  local last = from > 0 and
    call('ZRANGE', key, from - 1, from - 1, 'WITHSCORES') or {}
  return { taken, last[1] and from or 0, last[1] or '', last[2] or '0' }
end

from = ARGV[1] == 'skip' and math.min(from, call('ZCARD', key)) or locate()
if ARGV[1] == 'take' then
  return take()
end
return read(tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7])
