-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Messages whose time or tick has come.  Needs leaving.

-- Whether a message may belong into the sorted set: much cheaper than options().
local function may_be_sorted(element)
  return may_name(element, 'Mq-Priority') or may_name(element, 'Mq-From-Tick')
end

-- Promotes up to max messages, or about byte_budget bytes, whose time or tick has come, with at
-- most copy_budget bytes (nil: any number).  Returns how many, and what is left of both; of
-- copy_budget nil if the next message is longer.
local function promote(q, max, byte_budget, copy_budget)
  local moved, over_budget = 0, false
  copy_budget = copy_budget or math.huge
  -- A list of the wrong type is refused before a message with a priority moves.
  call('LLEN', q.ready)
  local tick = clock(q)
  local function from(low, high)
    -- Slices begin small: the next messages may be long.
    local size, n = 1, 1
    while n > 0 and moved < max and byte_budget > 0 and not over_budget do
      local due = call('ZRANGEBYSCORE', q.delayed, low, high,
        'LIMIT', 0, math.min(size, max - moved))
      local plain = {}
      n = #due
      for i = 1, n do
        copy_budget = copy_budget - #due[i]
        if copy_budget < 0 then
          over_budget, n = true, i - 1
          break
        end
      end
      local rank = n > 0 and call('ZRANK', q.delayed, due[1])
      if rank and moved == 0 then
        need(q.delayed, 'LPUSH')
        -- This removes nothing; without the right to remove, nothing is copied.
        call('ZREMRANGEBYRANK', q.delayed, 1, 0)
      end
      for i = 1, n do
        local element = due[i]:sub(33)
        local w = may_be_sorted(element) and options(element)
        if w and (w.tick or w.priority ~= 0) then
          place(q, element, w)
        else
          plain[#plain + 1] = element
        end
        byte_budget = byte_budget - #element
      end
      if plain[1] then
        call('LPUSH', q.ready, unpack(plain))
      end
      if rank then
        call('ZREMRANGEBYRANK', q.delayed, rank, rank + n - 1)
      end
      moved = moved + n
      size = math.min(2 * size, 64)
    end
  end
  from('-inf', now)
  if tick > 0 and not over_budget then
    from(AT_TICK, AT_TICK + tick)
  end
  return moved, byte_budget, not over_budget and copy_budget or nil
end
