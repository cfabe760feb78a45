-- Whether each of many queues needs a claim.

-- include alive

local call = redis.call
local clock_ms

local function now()
  local time = not clock_ms and call('TIME')
  clock_ms = clock_ms or time[1] * 1000 + math.floor(time[2] / 1000)
  return clock_ms
end

-- Watch and idle are the last of the keys of each queue; waits(...) gets the others, and
-- says whether a message is left there.  Mostly the same few consumers are on watch
-- everywhere.
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
    if not holder or waits(unpack(keys))
        or check and not is_called(holder, idle) then
      reply[#reply + 1] = 0
    else
      reply[#reply + 1] = check and call('ZCARD', idle) or -1
    end
  end
  return reply
end
