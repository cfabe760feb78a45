-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Carry out one small write even when memory is full: a consumer that could not join
-- could never make room.
--
-- KEYS key=*
-- ARGV command argument...
--
--   reply  the command's
--
-- If memory is full, Redis refuses a script's first write only if that needs memory, and lets
-- later ones pass.  PERSIST needs none; the time to live that it removes is set again by the
-- command, or the key has none.

redis.call('PERSIST', key)
return redis.call(command, key, unpack(ARGV, first_argument))
