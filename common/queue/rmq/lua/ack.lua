-- Ack messages among the oldest of an unacked list.
--
--   KEYS  unacked
--   ARGV  see lib/window.lua
--   reply 1, or 0 and nothing done when these are not where they are expected
--         to be
--
-- A crash before: all are unacked.  After: those that are acked are gone, and
-- the others are as they were, in the same order.

-- include rights
-- include window

if not is_window(KEYS[1]) then
  return 0
end
ack_window(KEYS[1])
return 1
