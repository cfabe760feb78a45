-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Tell a queue how a message has ended.
--
--   key       ready of that queue; on a cluster, where that may be on another node, outgoing
--             of the message's own (see outgoing.lua)
--   counters  of that queue
--   known     the key with the names of all queues
--   field     of outgoing; '': key is a ready list
--
-- check_notice() refuses a key that another user's is, or that is of the wrong type.

local function check_notice(key, field)
  call(field ~= '' and 'HLEN' or 'LLEN', key)
end

local function send_notice(key, counters, known, field, element)
  if field ~= '' then
    call('HSET', key, field, element)
    return
  end
  call('LPUSH', key, element)
  redis.pcall('SADD', known, key:match('%[(.*)%]'))
  redis.pcall('HINCRBY', counters, 'published', 1)
end
