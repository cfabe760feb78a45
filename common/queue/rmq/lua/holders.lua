-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- The connections that consume some queues, if all connections list themselves there.
--
-- KEYS connections=* alive=* holders...
--
--   reply  names; nil: there are other connections, which are asked about one by one
--
-- A connection joins `alive` after `connections` and `holders`, and leaves it first, and until
-- its time there no cleaner unlists it.  So those whose time is not over are all in
-- `connections`; if these are as many, there are no others.
--
-- Changes nothing.

local call = redis.call

-- include holders

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

if call('SCARD', connections) ~= call('ZCOUNT', alive, now, '+inf') then
  return false
end
return names_in(first_holders)
