-- Acks among the oldest messages of an unacked list: those of a window, which
-- ends with the oldest.
--
--   ARGV  how many the window has, the oldest of them, the newest of them; and
--         if not all are acked, either 'keep' and the places of the others,
--         or 32 bytes that no element has and the places of the acked ones.
--         The oldest has place 1; greater places come first, and the newest
--         is acked.
--
-- No message may be equal to another element of the list: then the places of
-- the oldest and the newest say what is between them.

local WINDOW = tonumber(ARGV[1])

local function is_window(unacked)
  return redis.call('LINDEX', unacked, -1) == ARGV[2]
    and redis.call('LINDEX', unacked, -WINDOW) == ARGV[3]
end

-- A refusal changes nothing: servers before Redis 7 refuse the first LSET.
local function ack_window(unacked)
  local call, mark, n = redis.call, ARGV[4], #ARGV - 4
  if not mark then
    call('LTRIM', unacked, 0, -WINDOW - 1)
    return
  end
  need(unacked, 'LSET', 'LREM')
  -- Changes nothing and needs no memory; see claim.lua.
  call('LTRIM', unacked, 0, -1)
  if mark ~= 'keep' then
    for i = 5, #ARGV do
      call('LSET', unacked, -ARGV[i], mark)
    end
    call('LREM', unacked, -n, mark)
    return
  end
  -- In their order to the newest places of the window.
  for i = 1, n do
    call('LSET', unacked, i - 1 - WINDOW,
      call('LINDEX', unacked, -ARGV[4 + i]))
  end
  call('LTRIM', unacked, 0, n - WINDOW - 1)
end
