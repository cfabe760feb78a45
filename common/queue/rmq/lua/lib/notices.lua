-- Tell a queue how a message has ended.
--
--   key       ready of that queue, whose counters are the other key; or on a cluster,
--             where it may be on another node, outgoing and none of the message's own
--             (see outgoing.lua)
--   known     the key with the names of all queues
--   field     of outgoing, or ''
--
-- check_notice() changes nothing, and is refused where send_notice() would be.

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
