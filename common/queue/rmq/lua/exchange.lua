-- Settle a large message by way of a stub: its header, and an id in the
-- place of the payload.  One transaction has
--
--   'begin', which puts the stub into unacked, if the message is where it
--     should be; settle.lua, for the stub; 'take', which removes the message
--     from unacked if the stub has arrived
--   LINSERT next to the stub in its target, and LREM of the stub
--   or for a sorted set: 'open', which renames the set to moving if the stub
--     is in it; ZADD to moving; 'close', which removes the stub from there and
--     renames moving back, or removes moving if it holds nothing else; and
--     commands that do nothing: without the right for one of those in 'open'
--     and 'close', the server refuses the transaction
--
-- So no script has the payload, and if any step refuses, those behind it find no
-- stub, and nothing has changed.
--
--   KEYS  the queue's (see lib/place.lua), unacked, the connection's info,
--         target; moving for 'open' and 'close'
--   ARGV  verb; the stub in unacked; the stub in the target, with the 32 bytes
--         in front for a sorted set; how, or '' if it goes into a sorted set
--         (see settle.lua); place of the message, from 0, the oldest; how
--         many there are; how many the connection has ever claimed; queue
--   reply 1, or 0 and nothing done
--
-- A crash before the transaction: the message is unacked.
-- After: the message is in its target only.

-- include place

local q, unacked, target, moving = queue_keys(1), KEYS[7], KEYS[9], KEYS[10]
local verb, stub, arrived, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- What is in unacked is as the consumer thinks if nothing came that it has not
-- seen, and nothing has gone.  A stub with a place of its own in the order of
-- its target is not for LINSERT; neither is one whose id may change.
local function begin()
  local v = options(arrived)
  if tonumber(call('HGET', KEYS[8], 'claimed:' .. ARGV[8])) ~= tonumber(ARGV[7])
      or call('LLEN', unacked) ~= tonumber(ARGV[6])
      or v and (how == 'push' or how ~= 'reject' and how ~= ''
        and (v.tick or v.priority ~= 0)) then
    return 0
  end
  need(unacked, 'LSET', 'LREM')
  if how ~= '' then
    need(target, 'LINSERT', 'LREM')
  end
  -- What take() needs; before Redis 7, need() cannot tell.
  call('LPOS', unacked, stub, 'MAXLEN', 1)
  call('LREM', unacked, -1, stub)
  call('RPUSH', unacked, stub)
  return 1
end

-- The stub of one that was not settled is still there.
local function take()
  if call('LPOS', unacked, stub, 'RANK', -1) then
    call('LREM', unacked, -1, stub)
    return 0
  end
  local there
  if how == '' then
    there = call('ZSCORE', target, arrived)
  else
    there = call('LPOS', target, arrived, 'RANK', how == 'front' and -1 or 1)
  end
  if not there then
    return 0
  end
  call('LSET', unacked, -1 - ARGV[5], stub)
  call('LREM', unacked, -1, stub)
  note_large(q)
  return 1
end

local function open()
  if not call('ZSCORE', target, arrived) then
    return 0
  end
  need(moving, 'ZADD', 'ZREM', 'DEL')
  call('RENAME', target, moving)
  return 1
end

local function close()
  if not call('ZSCORE', moving, arrived) then
    return call('DEL', moving)
  end
  call('RENAME', moving, target)
  note_large(q)
  return call('ZREM', target, arrived)
end

return (({ begin = begin, take = take, open = open, close = close })[verb])()
