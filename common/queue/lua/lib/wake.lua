-- Wakes up to n of the consumers that wait for a queue's messages, the one that
-- waits longest first; returns how many.  One that nobody hears on its channel
-- is dead.  Errors are ignored: messages are more important than who takes them.
--
--   idle    the key with their names; it also tells them which queue it is

local function wake(idle, n)
  local woken = 0
  while woken < n do
    local next = redis.pcall('ZPOPMIN', idle)[1]
    if not next then
      break
    end
    local heard = redis.pcall('PUBLISH', 'mq::wake::' .. next, idle)
    if type(heard) == 'number' and heard > 0 then
      woken = woken + 1
    end
  end
  return woken
end
