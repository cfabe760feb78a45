-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Begin the lease of a connection anew, unless it is over, and list the connection as alive.
--
-- KEYS lease=* holders...
-- ARGV ms [connection] [alive] [sure]
--
--   lease    the connection's heartbeat, or on a cluster its lease of the queue
--   holders  of each queue, once the connection is listed everywhere else: joins `alive`
--   ms       milliseconds from now on
--   alive    not on a cluster: sorted set of connections, by the end of their lease; not in
--            KEYS, as a user with the rights of an older version would be refused
--   sure     '1': of a consumer, which never renews a lease that is nearly over
--   reply    1; 0 and nothing done: the lease was over
--
-- Go's cleaners read a heartbeat's time to live in whole seconds, and take less than half a
-- second for none.  So the key lives for 500 ms longer than the lease, and no cleaner
-- unlists a connection before its time in `alive`.
--
-- A crash before: the lease is as it was.  After: all is done.

local call = redis.call

-- include holders

if not sure and call('PTTL', lease) < 500 or call('PEXPIRE', lease, ms + 500) == 0 then
  return 0
end
if alive then
  local time = call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local joins = #KEYS >= first_holders
  local listed = redis.pcall('ZADD', alive, joins and 'CH' or 'XX', now + ms, connection)
  if joins and type(listed) == 'number' then
    local over = call('ZRANGEBYSCORE', alive, '-inf', now, 'LIMIT', 0, 100)
    if #over > 0 then
      call('ZREM', alive, unpack(over))
    end
    for i = first_holders, #KEYS do
      list_holder(KEYS[i], connection, alive)
    end
  end
end
return 1
