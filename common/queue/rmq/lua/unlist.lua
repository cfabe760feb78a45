-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Forget a dead connection without queues.
--
-- KEYS connections=* queues=* heartbeat=* info=* running=*
-- ARGV connection
--
--   reply 1 if the connection was listed until now, else 0
--
-- A crash before: the connection is listed, and the next cleaner comes here again.  After:
-- nothing of the connection is left.

if redis.call('PTTL', heartbeat) > 0 or redis.call('SCARD', queues) > 0 then
  return 0
end
redis.call('DEL', info, running)
redis.pcall('ZREM', 'rmq::holders', connection)
return redis.call('SREM', connections, connection)
