-- Tell a queue how a message has ended.
--
--   key       ready of that queue; on a cluster, where that may be on another node, outgoing
--             of the message's own (see outgoing.lua)
--   counters  of that queue
--   known     the key with the names of all queues
--   field     of outgoing; '': key is a ready list
--
-- check_notice() changes nothing, and is refused if send_notice() would be.

local function check_notice(key, field)
  if field ~= '' then
    call('HLEN', key)
    need(key, 'HSET')
  else
    call('LLEN', key)
    need(key, 'LPUSH')
  end
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
