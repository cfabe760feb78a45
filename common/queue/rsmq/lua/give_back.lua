-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Give messages back, as if nobody had received them.
--
-- KEYS q:PLACES held
-- ARGV id...
-- NEEDS HGET HSET ZADD
--
--   id     none: any messages that the connection holds
--   reply  number of ids, from the first, that were given back, or, if none were named, are
--          not held any more; 0: the connection does not hold the first
--
-- At most 100 messages in one call.
-- A crash before: nothing has happened; when their time is up, the messages are everybody's.
-- After: the messages can be received, and no connection holds them.

-- include layout

local MAX = 100

if call('EXISTS', held) == 0 then
  return 0
end
local ids = { unpack(ARGV, 1, math.min(#ARGV, MAX)) }
if #ARGV == 0 then
  local some = call('HSCAN', held, 0, 'COUNT', MAX)[2]
  for i = 1, math.min(#some, 2 * MAX), 2 do
    ids[#ids + 1] = some[i]
  end
end
local all, n, back = holds(q, held, ids), 0, {}
for i = 1, #ids do
  if all or holds(q, held, { ids[i] }) and call('ZSCORE', q.z, ids[i]) then
    back[#back + 1] = ids[i]
  elseif #ARGV > 0 then
    break
  end
  n = i
end
if n == 0 then
  return 0
end
need()
check_types(q)
-- HDEL needs no memory; see claim.lua of rmq.
call('HDEL', held, unpack(ids, 1, n))
for i = 1, #back do
  put_back(q, back[i])
end
return n
