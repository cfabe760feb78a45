-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Settle a message that a connection holds.
--
-- KEYS q:PLACES held later | [to:PLACES] [names]
-- ARGV how id replaced extra delay_ms to_name [units]
-- NEEDS ZREM ZADD HSET
--
--   to, names  reject and push: of the other queue
--   how        'ack', 'reject', 'front', 'again' or 'push'
--   replaced   '1' if extra, further headers, replace the message's, else '0'
--   delay_ms   again: milliseconds
--   to_name    reject, push: of the other queue, else ''
--   units      push: the length of the body in units of UTF-16
--   reply      1; or nothing has changed: 0, the connection does not hold the message any
--              more; -1, the message is gone; -2, the body is too long for the other queue
--
-- If the other queue has the message's id, the message gets a new one.
--
-- A crash before: nothing has happened; when its time is up, the message is everybody's.
-- After: the message is in its new place only.

-- include layout

if not holds(q, held, { id }) or not call('ZSCORE', q.z, id) then
  if call('HEXISTS', q.h, id) == 1 then
    return 0
  end
  call('HDEL', held, id)
  return -1
end
if how == 'push' and tonumber(units)
    > (whole(call('HGET', to.h, 'maxsize')) or math.huge) then
  return -2
end
if how == 'reject' or how == 'push' then
  check_types(to)
elseif how == 'again' then
  call('ZCARD', later)
end
if how ~= 'front' then
  need()
  check_types(q)
end
-- HDEL needs no memory; see claim.lua of rmq.
call('HDEL', held, id)

local new_extra = replaced == '1' and extra

if how == 'ack' then
  forget(q, { id })
elseif how == 'front' then
  put_back(q, id)
elseif how == 'again' then
  local delay, extra = tonumber(delay_ms), new_extra or call('HGET', q.x, id)
  if delay == 0 then
    call('ZADD', q.z, score_since(now, extra), id)
  else
    call('ZADD', q.z, int(now + delay), id)
    call('HSET', q.d, id, last_receive(q, id))
    if priority_of(extra) > 0 then
      call('ZADD', later, int(now + delay), id)
    end
  end
else
  local attributes = call('HMGET', q.h, 'vt', 'maxsize')
  local extra, new = new_extra or call('HGET', q.x, id) or '', id
  if call('HEXISTS', to.h, id) == 1 or call('ZSCORE', to.z, id) then
    -- The new id tells the same age.
    local old = extra:find('"Mq-Copy-Of"', 1, true) and ''
      or ',"Mq-Copy-Of":["' .. shown_as(id) .. '"]'
    new = id:sub(1, 10) .. redis.sha1hex(id .. now_us):sub(1, 22)
    extra = extra == '' and old:sub(2) or extra .. old
  end
  create(to.h, names, to_name, attributes[1], 0, attributes[2])
  call('HSET', to.h, new, call('HGET', q.h, id))
  -- Messages come in the order of their scores; see score_next() of lib/moves.lua.
  call('ZADD', to.z, score_since(now_us / 1000 - 1, extra), new)
  redis.pcall('HINCRBY', to.h, 'totalsent', 1)
  if extra ~= '' then
    call('HSET', to.x, new, extra)
  end
  forget(q, { id })
end
-- Errors are ignored: a message is given back even if its headers cannot be written.
if new_extra and (how == 'front' or how == 'again') then
  if new_extra == '' then
    redis.pcall('HDEL', q.x, id)
  else
    redis.pcall('HSET', q.x, id, new_extra)
  end
end
return 1
