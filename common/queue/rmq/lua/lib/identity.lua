-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Tells a message from others of the same claim.

local call = redis.call

-- A claim ends at 1 MiB, so at most one of its messages is as long.
local function identity(element)
  return #element >= 1048576 and 'large' or redis.sha1hex(element)
end
