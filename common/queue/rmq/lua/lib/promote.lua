-- Messages whose time or tick has come.  Needs leaving.

-- Whether a message may belong into the sorted set: much cheaper than options().
local function may_be_sorted(element)
  return may_name(element, 'Mq-Priority') or may_name(element, 'Mq-From-Tick')
end

-- Promotes up to max messages, or about room bytes, whose time or tick has come, with at most
-- spare bytes (nil: any number).  Returns how many, and what is left of room and spare; of
-- spare nil if the next message is longer.
local function promote(q, max, room, spare)
  local moved, lacks = 0, false
  spare = spare or math.huge
  -- Keys of the wrong type are refused before anything has moved.
  call('LLEN', q.ready)
  call('ZCARD', q.priority)
  local tick = clock(q)
  local function from(low, high)
    -- Slices begin small: the next messages may be long.
    local size, n = 1, 1
    while n > 0 and moved < max and room > 0 and not lacks do
      local due = call('ZRANGEBYSCORE', q.delayed, low, high,
        'LIMIT', 0, math.min(size, max - moved))
      local plain = {}
      n = #due
      for i = 1, n do
        spare = spare - #due[i]
        if spare < 0 then
          lacks, n = true, i - 1
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
        room = room - #element
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
  if tick > 0 and not lacks then
    from(AT_TICK, AT_TICK + tick)
  end
  return moved, room, not lacks and spare or nil
end
