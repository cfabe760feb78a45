-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Wakes up to n consumers that wait for a queue's messages, the longest waiting first;
-- returns how many.  A consumer without a subscriber on its channel is dead.  Errors are
-- ignored: without a wake-up, consumers look for messages later.
--
--   idle    the key with their names; as the text published, it tells them the queue

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
