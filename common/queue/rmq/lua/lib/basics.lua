-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- include rights

local call = redis.call
local now_us = call('TIME')
now_us = now_us[1] * 1000000 + now_us[2]
local now = math.floor(now_us / 1000)
local AT_TICK, TICKS, FOLLOWS, IN_LINE = 2 ^ 50, -2 ^ 52, 2 ^ 51, 2 ^ 52

local function clock(q)
  return math.max(0, math.min(tonumber(call('GET', q.clock)) or 0, 2 ^ 48))
end

-- Whether a message may have a header of this name: much cheaper than options().
local function may_name(element, name)
  return #element > 4096 or element:find('"' .. name .. '"', 6, true)
end
