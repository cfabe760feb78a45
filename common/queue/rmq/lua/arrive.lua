-- Take messages in that come from another queue of a cluster.
--
--   KEYS  the queue's (see lib/place.lua), incoming, none
--   ARGV  the queue that they come from, then of each its field (see outgoing.lua) and
--         the element; without any, this only shows whether they would be refused
--   reply how many have arrived; one whose field has a mark in incoming has done so
--         before, and is left out
--
-- A crash before: they are in outgoing of the other queue.  After: they are there, and
-- here, with a mark by which a repetition does nothing.  Whoever comes next removes
-- them there.

-- include place
-- include moves

local to, incoming = queue_keys(1)
local source = ARGV[1]
need_admit(to)
need(to.results, 'SET', 'DEL')
need(incoming, 'HMGET', 'HSET', 'HDEL', 'PERSIST')
check_types(to)
-- A full server refuses the first write that needs memory.
call('HSET', incoming, '', '')
call('HDEL', incoming, '')

local fields = {}
for i = 2, #ARGV, 2 do
  fields[#fields + 1] = ARGV[i]
end
if #fields == 0 then
  return 0
end

local marks, mark = call('HMGET', incoming, unpack(fields)), {}
local stamped = string.format('%.0f %s', now, source)
local front = false

for i = 1, #fields do
  if not marks[i] then
    local field, element = fields[i], ARGV[2 * i + 1]
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
