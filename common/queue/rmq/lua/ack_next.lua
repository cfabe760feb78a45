-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
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
-- are the consumer's, who calls settle.lua instead.  Other messages than plain() ones, queues with
-- a tick, and groups with several slots have their turn as after settle.lua.
--
-- A crash before: the message is unacked.  After: the message is gone, and the next one is in
-- unacked, and counted, as after a claim; or has its turn as after settle.lua.

-- include basics
-- include claimed

local how, header, offset = 'ack', '', 0

-- The id and the header of a short message; nil if it has a key, a batch, a priority, a first tick,
-- or a time when it is due, or if an escape would take more time to read.
local function plain(element)
  local head = #element < 4096 and element:match('^\255%z\190\190J([^\\\n]*)\n')
  if head and not head:find('"Mq%-[KBPFD][eaur][ytioe]') then
    return head:match('.*"Mq%-Id"%s*:%s*%[%s*"([^"]*)"'), head
  end
end

local function claim_next()
  local id, head = plain(element)
  local group = id and head:match('.*"Mq%-Group"%s*:%s*%[%s*"([%z\1-\127]-)"')
  if not group or call('EXISTS', lease) == 0
      or call('EXISTS', paused, q.ready, q.priority, q.clock) > 0 then
    return
  end
  local line = redis.sha1hex(group):sub(1, 13)
  local locks = call('HMGET', q.locks, 'g' .. line, 's')
  if locks[2] or not locks[1] or locks[1]:sub(1, 32) ~= id
      or call('ZCOUNT', q.delayed, '-inf', now) > 0 then
    return
  end
  local score = string.format('%.0f', IN_LINE + tonumber(line, 16))
  local member = call('ZRANGEBYSCORE', q.delayed, score, score, 'LIMIT', 0, 1)[1]
  local next = member and member:sub(33)
  id = next and plain(next)
  if not id or #id ~= 32 then
    return
  end
  need(unacked, 'HINCRBY', 'HSET', 'LPUSH', 'ZREM')
  if call('LREM', unacked, -1, element) == 0 then
    return
  end
  count_claimed(1)
  call('HSET', q.locks, 'g' .. line, string.format('%s %.0f', id, now_us))
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
