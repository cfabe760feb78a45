-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Give the newest unacked messages back to the front of ready, in their old order.
--
-- KEYS q:PLACES unacked known
-- ARGV max element...
-- NEEDS RPOP GET HGET HSET HDEL ZADD LPUSH RPUSH
--
--   max      messages
--   element  the newest and the oldest message, or, if some may be equal, each, the newest
--            first; none: any messages
--   reply    number of messages given back, the newest first; 0 and nothing done: the
--            elements are not the newest ones of unacked
--
-- The newest goes first, so that the oldest ends up in front of its priority.  How many move
-- in one call, lib/give_back.lua says.
--
-- A crash before: the messages are unacked.  After: those that moved are ready.

-- include place
-- include give_back

max = tonumber(max)

local function are_newest()
  local named = { unpack(ARGV, first_element) }
  if #named == 2 then
    return call('LINDEX', unacked, 0) == named[1]
      and call('LINDEX', unacked, max - 1) == named[2]
  end
  local all = #named > 0 and call('LRANGE', unacked, 0, max - 1)
  for i = 1, #named do
    if all[i] ~= named[i] then
      return false
    end
  end
  return true
end

if call('EXISTS', unacked) == 0 or not are_newest() then
  return 0
end
check_types(q)
need()
-- LTRIM changes nothing and needs no memory; see claim.lua.
call('LTRIM', unacked, 0, -1)
local moved = give_back_newest(q, unacked, max)
if moved > 0 then
  make_known(q, known)
end
return moved
