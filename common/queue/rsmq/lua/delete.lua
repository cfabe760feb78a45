-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Remove a queue without consumers and its queue of rejected messages, with all of their keys.
--
-- KEYS names connections | q:PLACES counters paused rate later watch idle holders slots
--      settings minutes hours | rejected:PLACES r_counters=counters r_paused=paused r_rate=rate
--      r_later=later r_watch=watch r_idle=idle r_holders=holders r_slots=slots
--      r_settings=settings r_minutes=minutes r_hours=hours | lease...
-- ARGV name rejected_name look connection...
--
--   rejected    and the keys behind it, of the queue of rejected messages
--   lease       of each connection
--   look        '1': change nothing
--   connection  in the order of the leases
--   reply       {live consumers of the queue, 1 if the queue is known, messages that can be
--               received, hidden messages, rejected messages}, or nothing when other
--               connections are listed now
--
-- A crash before: nothing has happened.  After: the queue is gone.  With consumers, nothing
-- is done.

-- include layout

local consumers = 0

if call('ZCARD', connections) ~= #ARGV - first_connection + 1 then
  return false
end
for i = first_connection, #ARGV do
  if not call('ZSCORE', connections, ARGV[i]) then
    return false
  end
  local lease = KEYS[i - first_connection + first_lease]
  local queues = call('HGET', lease, 'queues')
  for _, consumed in pairs(queues and cjson.decode(queues) or {}) do
    if consumed == name or consumed == rejected_name then
      consumers = consumers + 1
    end
  end
end
local there = call('ZCARD', q.z)
local ready = call('ZCOUNT', q.z, '-inf', int(now))
local reply = { consumers, call('HEXISTS', q.h, 'vt'), ready, there - ready,
  call('ZCARD', rejected.z) }
if consumers > 0 or look == '1' then
  return reply
end
need(names, 'SREM')
call('UNLINK', q.z, q.h, q.x, q.d, counters, paused, rate, later, watch, idle, holders, slots,
  settings, minutes, hours)
call('UNLINK', rejected.z, rejected.h, rejected.x, rejected.d, r_counters, r_paused,
  r_rate, r_later, r_watch, r_idle, r_holders, r_slots, r_settings, r_minutes, r_hours)
call('SREM', names, name, rejected_name)
return reply
