-- End the stay of a message in the caller's hands.
--
--   KEYS  home (see lib/rsmq.lua), what the connection holds; reject and push:
--         the home of the other queue, the set of all names, and push: its
--         counters
--   ARGV  'ack', 'reject', 'front', 'again' or 'push'; id; '1' if the headers
--         that follow replace those that it has, else '0'; further headers;
--         again: milliseconds of delay; reject, push: name of the other queue
--   reply 1, or 0 when the connection does not hold it any more; nothing has
--         changed then
--
-- A crash before: nothing has happened, and the message is everybody's again
-- when its time is up.  After: it is where it was to go, and nowhere else.

-- include rsmq

local q, held = home(1), KEYS[5]
local verb, id = ARGV[1], ARGV[2]

if not holds(q, held, { id }) or not call('ZSCORE', q.z, id) then
  return 0
end
if verb == 'ack' then
  need(q.z, 'ZREM')
elseif verb == 'reject' or verb == 'push' then
  need(q.z, 'ZADD', 'HINCRBY', 'ZREM')
end
-- It needs no memory; see claim.lua.
call('HDEL', held, id)

local function move(to)
  local attributes = call('HMGET', q.h, 'vt', 'maxsize')
  local extra = ARGV[3] == '1' and ARGV[4] or call('HGET', q.x, id) or ''
  create(to.h, KEYS[10], ARGV[6], attributes[1] or 30, 0,
    attributes[2] or 65536)
  call('HSET', to.h, id, call('HGET', q.h, id))
  call('ZADD', to.z, int(now), id)
  call('HINCRBY', to.h, 'totalsent', 1)
  if extra ~= '' then
    call('HSET', to.x, id, extra)
  end
  forget(q, { id })
end

if verb == 'ack' then
  forget(q, { id })
elseif verb == 'front' then
  put_back(q, id)
elseif verb == 'again' then
  local delay = tonumber(ARGV[5])
  call('ZADD', q.z, int(now + delay), id)
  if delay > 0 then
    call('SADD', q.d, id)
  end
else
  move(home(6))
end
if ARGV[3] == '1' and (verb == 'front' or verb == 'again') then
  if ARGV[4] == '' then
    call('HDEL', q.x, id)
  else
    call('HSET', q.x, id, ARGV[4])
  end
end
return 1
