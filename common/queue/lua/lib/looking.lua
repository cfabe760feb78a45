-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Whether each of many queues needs a claim.

-- include alive

local call = redis.call
local clock_ms

-- include shared

local function now()
  local time = not clock_ms and call('TIME')
  clock_ms = clock_ms or time[1] * 1000 + math.floor(time[2] / 1000)
  return clock_ms
end

-- Every queue has `each` keys: watch and idle come last, waits() gets the others, and returns
-- whether a message is left.  Mostly the same few consumers are on watch everywhere, so
-- alive[] remembers them.
local function look(each, waits)
  local reply, alive, check = {}, {}, checked == '1'
  local function is_called(holder, idle)
    if alive[holder] == nil then
      alive[holder] = is_alive(holder)
    end
    return alive[holder] and call('ZSCORE', idle, name)
  end
  for i = 1, #KEYS, each do
    local keys = {unpack(KEYS, i, i + each - 1)}
    local idle, watch = table.remove(keys), table.remove(keys)
    local holder = call('GET', watch)
    if not holder or holder ~= NOBODY and (waits(unpack(keys))
        or check and not is_called(holder, idle)) then
      reply[#reply + 1] = 0
    else
      reply[#reply + 1] = check and call('ZCARD', idle) or -1
    end
  end
  return reply
end
