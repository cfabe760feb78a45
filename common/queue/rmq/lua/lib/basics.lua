-- What every script needs that moves messages: the time, and the keys of a queue;
-- what they are, place.lua says.

-- include rights

local call = redis.call
local now_us = call('TIME')
now_us = now_us[1] * 1000000 + now_us[2]
local now = math.floor(now_us / 1000)
local AT_TICK, TICKS, IN_LINE = 2 ^ 50, -2 ^ 52, 2 ^ 52

-- Those of a queue, which begin there, and the next few, which the script names.
local function queue_keys(first)
  local ready, priority, delayed, locks, clock, results =
    unpack(KEYS, first, first + 5)
  return { ready = ready, priority = priority, delayed = delayed, locks = locks,
    clock = clock, results = results }, unpack(KEYS, first + 6, first + 18)
end

local function clock(q)
  return math.max(0, math.min(tonumber(call('GET', q.clock)) or 0, 2 ^ 48))
end

-- Whether the header of a message may have this name: much cheaper than options().
local function may_name(element, name)
  return #element > 4096 or element:find('"' .. name .. '"', 6, true)
end
