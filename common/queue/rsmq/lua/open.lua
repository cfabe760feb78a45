-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Make a queue, unless it exists.
--
-- KEYS hash=:Q names
-- ARGV name vt delay maxsize
-- NEEDS HSETNX SADD
--
--   reply 1: the queue was made; 0: it existed, and nothing has changed
--
-- A crash before: nothing has happened.  After: the queue exists, and is listed.

-- include layout

need()
local new = call('HEXISTS', hash, 'vt') == 0 and 1 or 0
create(hash, names, name, vt, delay, maxsize)
return new
