-- Tell a queue how a message has ended.
--
--   at     where its keys begin: ready and counters of that queue; or on a cluster,
--          where it may be on another node, outgoing and none of the message's own
--          (see outgoing.lua)
--   known  the key with the names of all queues; nil: the caller sees to that
--   field  of outgoing, or ''
--
-- check_notice() changes nothing, and is refused where send_notice() would be.

local function check_notice(at, field)
  if field ~= '' then
    call('HLEN', KEYS[at])
    need(KEYS[at], 'HSET')
  else
    call('LLEN', KEYS[at])
    need(KEYS[at], 'LPUSH')
  end
end

local function send_notice(at, known, field, element)
  if field ~= '' then
    call('HSET', KEYS[at], field, element)
    return
  end
  call('LPUSH', KEYS[at], element)
  redis.pcall('SADD', known, KEYS[at]:match('%[(.*)%]'))
  redis.pcall('HINCRBY', KEYS[at + 1], 'published', 1)
end
