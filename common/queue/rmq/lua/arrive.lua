-- Take messages in that come from another queue of a cluster.
--
-- KEYS to:PLACES incoming none
-- ARGV source (field element)...
--
--   source  the queue that they come from
--   field   see outgoing.lua; without any, this only shows whether they would be refused
--   reply how many have arrived; one whose field has a mark in incoming has done so
--         before, and is left out
--
-- A crash before: they are in outgoing of the other queue.  After: they are there, and
-- here, with a mark by which a repetition does nothing.  Whoever comes next removes
-- them there.

-- include place
-- include moves

need_admit(to)
need(to.results, 'SET', 'DEL')
need(incoming, 'HMGET', 'HSET', 'HDEL', 'PERSIST')
check_types(to)
-- A full server refuses the first write that needs memory.
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
      -- If the message comes back, no earlier result must be left.
      call('DEL', to.results .. w.reply_to)
    end
    arrive(to, element, w, false, front)
    mark[#mark + 1] = field
    mark[#mark + 1] = stamped
  end
end
arrive_plain(to, front)
if #mark > 0 then
  call('HSET', incoming, unpack(mark))
  -- It would expire once the queue was deleted; see delete.lua.
  call('PERSIST', incoming)
end
return #mark / 2
