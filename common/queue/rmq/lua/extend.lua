-- Begin the lease of what was handed out by receipt anew, unless it is over.
--
-- KEYS lease=*
-- ARGV ms
--
--   lease  the connection's heartbeat, or on a cluster its lease of the queue
--   ms     milliseconds from now on
--   reply  1, or 0 and nothing done when the lease was over
--
-- Go's cleaners read how long a heartbeat lives in whole seconds, and take less than half
-- of one for none.  So the key lives for that much longer than the lease.
--
-- A crash before or after changes nothing but the time.

if redis.call('PTTL', lease) < 500 then
  return 0
end
return redis.call('PEXPIRE', lease, ms + 500)
