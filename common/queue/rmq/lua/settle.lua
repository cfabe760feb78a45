-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- End a message's stay in an unacked list.
--
-- KEYS q:PLACES unacked known | [to:PLACES]
-- ARGV how element header offset ms unique
-- NEEDS HGET HMGET HSET HDEL ZRANGEBYSCORE GET ZADD LPUSH ZREM
--
--   to      the other queue; or only its first key: rejected for 'reject' and 'expire',
--           outgoing for 'push' to another node of a cluster
--   how     'ack': removed; 'purge': likewise, but its batch counts it as purged
--           'reject': to the newest end of rejected
--           'expire': likewise, without having run, so that its key is freed
--           'front': to be claimed before all others of its kind
--           'again': after ms milliseconds, behind the others
--           'push': to the other queue
--   header  for the moved message, in front of the element from the offset on (0: all), so
--           that a large payload is sent only once
--   unique  32 bytes that no other element has, or the field for outgoing
--   reply   1, or 0 when the element is gone: the lease was lost
--
-- A crash before: the message is unacked.  After: the message is in its new place only, or
-- in outgoing.
-- The write that may be refused (wrong type) comes before the removal, so a
-- refusal changes nothing.

-- include settling

return may_settle() and settle() or 0
