-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- The setting slots-shared limits how many messages of a queue run at a time.  The hash `slots`
-- has for each connection with messages of the queue their number, and as `limit` the setting,
-- both as of the last claim.  Needs call.

-- On watch while no slot is free: idle consumers need not look.
local NOBODY = '*'

-- The share of a connection with `own` messages in the queue's slots: a table, where `free` is the
-- number of slots left, at least 0.  nil: the queue does not have the setting.  `lease` is the
-- connection's lease; other connections whose lease is over have no slots.
local function share_of(slots, settings, lease, connection, own)
  local limit = tonumber(call('HGET', settings, 'slots-shared'))
  if not limit or limit < 1 then
    return nil
  end
  local free, all, others, known = limit - own, call('HGETALL', slots), {}, nil
  for i = 1, #all, 2 do
    local name, n = all[i], tonumber(all[i + 1]) or 0
    if name == 'limit' then
      known = n
    elseif name ~= connection then
      others[name], free = n, free - n
    end
  end
  local from, to = lease:find(connection, 1, true)
  for name, n in pairs(free <= 0 and others or {}) do
    if call('EXISTS', lease:sub(1, from - 1) .. name .. lease:sub(to + 1)) == 0 then
      call('HDEL', slots, name)
      free = free + n
    end
  end
  return { slots = slots, connection = connection, own = own, free = math.max(free, 0),
    limit = limit ~= known and limit }
end

-- Notes that the connection has claimed n messages.
local function note_share(share, n)
  if share.own + n > 0 then
    call('HSET', share.slots, share.connection, share.own + n)
  else
    call('HDEL', share.slots, share.connection)
  end
  if share.limit then
    call('HSET', share.slots, 'limit', share.limit)
  end
end

-- Notes that a connection has `own` messages left, outside of a claim.  Idle consumers look.
local function free_slots(slots, watch, connection, own)
  if call('HEXISTS', slots, connection) == 1 then
    note_share({ slots = slots, connection = connection, own = own }, 0)
    call('DEL', watch)
  end
end

-- How many slots are taken, and how many there are; -1, -1: there is no limit.
local function count_slots(slots)
  -- A user with the rights of an older version may not read the hash.
  local all = call('EXISTS', slots) == 1 and redis.pcall('HGETALL', slots) or {}
  local taken, limit = 0, -1
  for i = 1, #all, 2 do
    local n = tonumber(all[i + 1]) or 0
    if all[i] == 'limit' then
      limit = n
    else
      taken = taken + n
    end
  end
  return limit < 0 and -1 or taken, limit
end
