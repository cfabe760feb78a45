-- Begin the lease of a connection by receipt anew, unless it is over.
--
-- KEYS lease=*
-- ARGV ms
--
--   lease  the connection's heartbeat, or on a cluster its lease of the queue
--   ms     milliseconds from now on
--   reply  1; 0 and nothing done: the lease was over
--
-- Go's cleaners read a heartbeat's time to live in whole seconds, and take less than half a
-- second for none.  So the key lives for 500 ms longer than the lease.
--
-- A crash before or after changes nothing but the time.

if redis.call('PTTL', lease) < 500 then
  return 0
end
return redis.call('PEXPIRE', lease, ms + 500)
