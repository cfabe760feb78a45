-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- One step of a cleaner's walk through the fields of a hash, for those without a message.
--
-- KEYS q:PLACES
-- ARGV which cursor dry
--
--   which  of the keys: 'h', 'x' or 'd'
--   dry    '1': change nothing
--   reply  {cursor, '0' at the end; number of fields removed; number of bodies that had no
--          id in z and became messages again}
--
-- No field that may be a body is removed.  A body becomes a message only if the field is an id
-- more than a minute old: some ports write the id into z after the body.
--
-- A crash before: nothing has happened.  After: nothing is lost.

-- include layout
-- include moves

dry = dry == '1'
local removed, adopted = 0, 0

local function is_there(id)
  return call('ZSCORE', q.z, id) or call('HEXISTS', q.h, id) == 1
end

local function remove(key, field)
  if not dry then
    call('HDEL', key, field)
  end
  removed = removed + 1
end

local function look_at_field(field)
  local id = field:match('^(.*):rc$') or field:match('^(.*):fr$')
  local sent_ms = told_by(field)
  if call('ZSCORE', q.z, field) then
    return
  elseif sent_ms and sent_ms < now - 60000 then
    if not dry then
      call('ZADD', q.z, int(sent(field)), field)
    end
    adopted = adopted + 1
  elseif id and not is_there(id) then
    remove(q.h, field)
  end
end

local room, left = 1048576, 1000
if not dry then
  probe(q)
end
repeat
  local part = call('HSCAN', q[which], cursor, 'COUNT', 16)
  cursor, part = part[1], part[2]
  for i = 1, #part do
    room = room - #part[i]
  end
  left = left - #part
  for i = 1, #part, 2 do
    if which == 'h' then
      look_at_field(part[i])
    elseif not is_there(part[i]) then
      remove(q[which], part[i])
    end
  end
until cursor == '0' or left <= 0 or room <= 0
return { cursor, removed, adopted }
