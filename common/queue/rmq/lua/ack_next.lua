-- Ack a message that holds its group, and claim the next of the group for the same connection.
--
-- KEYS q:PLACES unacked known lease paused info
-- ARGV element queue
-- NEEDS HGET HMGET HSET HDEL ZRANGEBYSCORE GET ZADD LPUSH ZREM
--
--   reply  as that of settle.lua; or 1 and the claimed message
--
-- The next message is claimed if it is the only one that a claim could take: the connection's
-- heartbeat is there, the queue is not paused, and nothing is ready or due.  Rates and limits
-- are the consumer's, who calls settle.lua instead.  Messages with a key, in a batch or with a
-- priority, queues with a tick, and groups with several slots have their turn as after settle.lua.
--
-- A crash before: the message is unacked.  After: the message is gone, and the next one is in
-- unacked, and counted, as after a claim; or has its turn as after settle.lua.

-- include basics
-- include options
-- include claimed

local how, header, offset = 'ack', '', 0

-- The headers of a short message that has no key and waits for no tick; else none.
local function plain_headers(element)
  local head = #element < 4096 and asking(element)
  local has = head and ours(head) or {}
  return has.Key == nil and has['From-Tick'] == nil and has or {}
end

local function claim_next()
  local own = plain_headers(element)
  if not own.Id or not own.Group or own.Batch or call('EXISTS', lease) == 0
      or call('EXISTS', paused, q.ready, q.priority, q.clock) > 0 then
    return
  end
  local line = redis.sha1hex(as_text(own.Group)):sub(1, 13)
  local locks = call('HMGET', q.locks, 'g' .. line, 's')
  if locks[2] or not locks[1] or locks[1]:sub(1, 32) ~= own.Id
      or call('ZCOUNT', q.delayed, '-inf', now) > 0 then
    return
  end
  local score = string.format('%.0f', IN_LINE + tonumber(line, 16))
  local member = call('ZRANGEBYSCORE', q.delayed, score, score, 'LIMIT', 0, 1)[1]
  local next = member and member:sub(33)
  local has = member and plain_headers(next) or {}
  if not has.Id or has.Priority or has.Due then
    return
  end
  need(unacked, 'HINCRBY', 'HSET', 'LPUSH', 'ZREM')
  if call('LREM', unacked, -1, element) == 0 then
    return
  end
  count_claimed(1)
  call('HSET', q.locks, 'g' .. line, string.format('%s %.0f', has.Id, now_us))
  call('LPUSH', unacked, next)
  call('ZREM', q.delayed, member)
  return next
end

local claimed = claim_next()
if claimed then
  return { 1, claimed }
end
-- include settling
return may_settle() and settle() or 0
