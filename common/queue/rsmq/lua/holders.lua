-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- The connections that consume some queues, if all connections list themselves there.
--
-- KEYS connections holders...
--
--   reply  names; nil: there are older connections, which are asked about one by one
--
-- Changes nothing.

local call = redis.call

-- include holders

if call('ZCOUNT', connections, '-inf', '(1') > 0 then
  return false
end
return names_in(first_holders)
