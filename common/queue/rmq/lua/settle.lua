-- End a message's stay in an unacked list.
--
-- KEYS q:PLACES unacked known | [to:PLACES]
-- ARGV how element header offset ms unique
--
--   to      the other queue; or its first key only: for 'reject' and 'expire' rejected, and
--           for 'push' to another node of a cluster outgoing
--   how     'ack': it is gone
--           'reject': to the newest end of rejected
--           'expire': there, too, without having run: no key outlives that
--           'front': to be claimed before all others of its kind
--           'again': after ms milliseconds, behind the others
--           'push': to the other queue
--   header  and the element from the offset on (0 is its beginning) are what moves on, so
--           that a large payload is sent only once
--   unique  32 bytes that no other element has, or the field for outgoing
--   reply   1, or 0 when the element is not there: the lease was lost
--
-- A crash before: it is still unacked.  After: it is in its new place only, or in
-- outgoing.
-- The write that may be refused (wrong type) comes before the removal, so a
-- refusal changes nothing.

-- include settling

return may_settle() and settle() or 0
