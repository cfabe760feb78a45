-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Removes from an unacked list the n oldest elements equal to `element`; returns how many.
-- Long elements are overwritten with a short mark first, which no element is equal to: the
-- server's log and its replicas then get no copy of them.

local LONG = 4096

local function remove(unacked, element, n)
  if #element < LONG then
    return redis.call('LREM', unacked, -n, element)
  end
  local time = redis.call('TIME')
  local mark = redis.sha1hex(time[1] .. '.' .. time[2] .. unacked)
  local places = redis.call('LPOS', unacked, element, 'RANK', -1, 'COUNT', n)
  -- LTRIM changes nothing and needs no memory; see claim.lua.
  redis.call('LTRIM', unacked, 0, -1)
  for i = 1, #places do
    redis.call('LSET', unacked, places[i], mark)
  end
  return redis.call('LREM', unacked, -n, mark)
end
