-- Read messages that are on their way to other queues of a cluster.
--
--   KEYS  outgoing, none
--   ARGV  a field, or ''; the name of a queue, or ''; max messages; about how many
--         bytes
--   reply {field, element...}: in the order of the fields, those behind that one; with
--         a queue, only those that go there
--
-- A field is 'ID FROM QUEUE', and its value the element as it shall arrive: see "Transfers
-- on a cluster" in mq-layout(7).  Changes nothing.

local call = redis.call
local key, after, to = KEYS[1], ARGV[1], ARGV[2]
local max, room = tonumber(ARGV[3]), tonumber(ARGV[4])
-- Of more than these, any are read first: to sort all would take too long.
local SORTED = 1000

local all = to == '' and call('HLEN', key) > SORTED
  and call('HRANDFIELD', key, SORTED) or call('HKEYS', key)
local fields = {}
for i = 1, #all do
  if all[i] > after and (to == '' or all[i]:match('^%S+ %a+ (.*)$') == to) then
    fields[#fields + 1] = all[i]
  end
end
table.sort(fields)

local reply = {}
for i = 1, math.min(max, #fields) do
  if room <= 0 then
    break
  end
  local element = call('HGET', key, fields[i])
  reply[#reply + 1] = fields[i]
  reply[#reply + 1] = element
  room = room - #element
end
return reply
