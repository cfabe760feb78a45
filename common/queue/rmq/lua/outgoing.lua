-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Read messages that are on their way to other queues of a cluster.
--
-- KEYS outgoing none
-- ARGV after to max bytes
--
--   after  a field, or ''
--   to     the name of a queue, or ''
--   max    messages
--   bytes  about how many
--   reply  {field, element...}: fields behind `after`, in their order; with `to`, only
--          messages that go there
--
-- A field is 'ID FROM QUEUE', and its value the element as it shall arrive: see "Transfers
-- on a cluster" in mq-layout(7).  Changes nothing.

local call = redis.call
local room = tonumber(bytes)
-- If outgoing has more messages, any of them come first: to sort all would take too long.
local SORTED = 1000

local all = to == '' and call('HLEN', outgoing) > SORTED
  and call('HRANDFIELD', outgoing, SORTED) or call('HKEYS', outgoing)
local fields = {}
for i = 1, #all do
  if all[i] > after and (to == '' or all[i]:match('^%S+ %a+ (.*)$') == to) then
    fields[#fields + 1] = all[i]
  end
end
table.sort(fields)

local reply = {}
for i = 1, math.min(tonumber(max), #fields) do
  if room <= 0 then
    break
  end
  local element = call('HGET', outgoing, fields[i])
  reply[#reply + 1] = fields[i]
  reply[#reply + 1] = element
  room = room - #element
end
return reply
