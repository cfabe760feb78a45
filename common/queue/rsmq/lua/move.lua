-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Move messages of a place to a queue, to be received, or drop them: the next ones, unseen,
-- or messages that a walk has chosen.
--
-- KEYS q:PLACES | to:PLACES names spared...
-- ARGV from how to_name max bytes looks (score id)...
--
--   to         the target; to drop messages, the same queue
--   names      the set of names of the target's namespace
--   spared     messages that connections hold, which stay where they are
--   from       'ready', 'delayed', 'unacked' or 'rejected'
--   how        see lib/moves.lua
--   max        messages
--   bytes      about how many
--   looks      how many messages to look at; 0: chosen messages only
--   score, id  of the message looked at last ('' at the beginning), or of each chosen one
--   reply      {messages moved, messages that follow, score and id of the last}
--
-- A chosen message whose score has changed, as when it was received, stays where it is; so
-- does a message whose id the target has.
--
-- A crash before: all messages are where they were.  After: each is in its new place only.

-- include layout
-- include walk
-- include moves

local room = tonumber(bytes)
max, looks = tonumber(max), tonumber(looks)
local score, id = unpack(ARGV, first_score)
local moved, size = 0, 1
-- Bodies count only if they go to another queue.
local heavy = how ~= 'drop' and q.z ~= to.z
local spared = held_from(q, first_spared)

local function choose(ids)
  local list, chosen = is_hidden(from) and taken(q, ids), {}
  for i = 1, #ids do
    if not (list and list[i] ~= (from == 'unacked') or spared[ids[i]]) then
      chosen[#chosen + 1] = ids[i]
      room = room - (heavy and call('HSTRLEN', q.h, ids[i]) or 0)
    end
  end
  return chosen
end

be_sure(q, to, how ~= 'drop')
local chosen, at, stop = {}, 0, 0
if looks > 0 then
  at, stop = locate(q, from, score, id)
end
for i = first_score, looks == 0 and #ARGV or 0, each_score do
  local score, id = unpack(ARGV, i, i + 1)
  if call('ZSCORE', q.z, id) == score then
    chosen[#chosen + 1] = id
  end
end
if how ~= 'drop' and (chosen[1] or at < stop) then
  create_as(q, to, names, to_name)
end
for part in parts(chosen, 32) do
  moved = moved + take(q, to, part, how)
end
while at < stop and moved < max and looks > 0 and room > 0 do
  local n = math.min(size, max - moved, looks, stop - at)
  local ids = call('ZRANGE', q.z, at, at + n - 1)
  id, score = ids[n], call('ZSCORE', q.z, ids[n])
  ids = choose(ids)
  moved = moved + (#ids > 0 and take(q, to, ids, how) or 0)
  looks = looks - n
  at, stop = locate(q, from, score, id)
  size = math.min(2 * size, heavy and 32 or 128)
end
return { moved, math.max(0, stop - at), score, id }
