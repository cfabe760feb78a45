-- What ends is removed from an unacked list: of n equal elements the oldest; how many.
-- Long ones go by their places, so that the server's log and its replicas get the few
-- bytes of a mark instead of a copy.  No element is equal to the mark.

local LONG = 4096

-- A refusal must come before the first change.
local function need_remove(unacked, element)
  need(unacked, 'LREM')
  if #element >= LONG then
    need(unacked, 'LSET')
  end
end

local function remove(unacked, element, n)
  if #element < LONG then
    return redis.call('LREM', unacked, -n, element)
  end
  local time = redis.call('TIME')
  local mark = redis.sha1hex(time[1] .. '.' .. time[2] .. unacked)
  local places = redis.call('LPOS', unacked, element, 'RANK', -1, 'COUNT', n)
  -- Changes nothing and needs no memory; see claim.lua.
  redis.call('LTRIM', unacked, 0, -1)
  for i = 1, #places do
    redis.call('LSET', unacked, places[i], mark)
  end
  return redis.call('LREM', unacked, -n, mark)
end
