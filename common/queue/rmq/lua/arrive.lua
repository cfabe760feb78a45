-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Take in messages that come from another queue of a cluster.
--
-- KEYS to:PLACES incoming none
-- ARGV source (field element)...
-- NEEDS GET HGET HSET HDEL ZADD LPUSH RPUSH SET DEL HMGET PERSIST
--
--   source  the queue that the messages come from
--   field   of the message in outgoing, see outgoing.lua; none: only a refusal is looked for
--   reply   number of messages that have arrived; a message whose field is in incoming had
--           arrived before, and is left out
--
-- A crash before: the messages are in outgoing of the other queue.  After: the messages are
-- in both queues, with a mark in incoming, by which a repetition does nothing and a cleaner
-- removes them from outgoing.

-- include place
-- include moves

need()
check_types(to)
-- If memory is full, the first write that needs some is refused: this one.
call('HSET', incoming, '', '')
call('HDEL', incoming, '')

local fields, elements = {}, {}
for i = first_field, #ARGV, each_field do
  fields[#fields + 1], elements[#elements + 1] = unpack(ARGV, i, i + 1)
end
if #fields == 0 then
  return 0
end

local marks, mark = call('HMGET', incoming, unpack(fields)), {}
local stamped = string.format('%.0f %s', now, source)
local front = false

for i = 1, #fields do
  if not marks[i] then
    local field, element = fields[i], elements[i]
    local from, w = field:match('^%S+ (%a+)'), options(element)
    if front ~= (from == 'unacked') then
      arrive_plain(to, front)
      front = not front
    end
    if from == 'delayed' then
      element = at_once(to, element, w)
    elseif from == 'push' and w and w.reply_to then
      -- If the message has been here before, its earlier result must go.
      call('DEL', to.results .. w.reply_to)
    end
    arrive(to, element, w, false, front, from == 'timed' and w and w.due)
    mark[#mark + 1] = field
    mark[#mark + 1] = stamped
  end
end
arrive_plain(to, front)
if #mark > 0 then
  call('HSET', incoming, unpack(mark))
  -- If the queue was deleted, incoming has a time to live; see delete.lua.
  call('PERSIST', incoming)
end
return #mark / 2
