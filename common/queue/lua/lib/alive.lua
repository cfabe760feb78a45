-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Whether a consumer listens to its channel; if not, the consumer is dead, or will connect
-- again.  True if this user may not ask.
local function is_alive(name)
  local found = redis.pcall('PUBSUB', 'NUMSUB', 'mq::wake::' .. name)
  return found.err ~= nil or found[2] > 0
end
