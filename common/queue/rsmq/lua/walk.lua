-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- One step of a walk through the messages at one place, the first to be received first.
--
-- KEYS q:PLACES
-- ARGV place cursor to_skip most bytes needle
--
--   place    'ready', 'delayed', 'unacked' or 'rejected': all messages of a queue of rejected
--            ones, where receives are no runs
--   cursor   where the walk is ('' at its beginning)
--   to_skip  how many of the place to step over at the beginning
--   most     messages
--   bytes    about how many
--   reply {cursor; number of messages of the place looked at; 1 if more may follow; then for
--         each message with the needle in it: id, score, message}
--
-- Messages that come to the end after the first step are not looked at.
-- Changes nothing.

-- include layout
-- include walk

-- The cursor: number of messages to look at, and of the place to step over; score and id of
-- the last message.
local left, skip, score, id = cursor:match('^(%d+) (%d+) (%S*) (.*)$')
local max, room = tonumber(most), tonumber(bytes)
local filtered, held = is_hidden(place), place == 'unacked' and 1 or 0
local at, stop = locate(q, place, score or '', id)
skip = tonumber(skip or to_skip)
if not left and not filtered then
  at, skip = math.min(at + skip, math.max(at, stop)), 0
end
stop = math.min(stop, at + (tonumber(left) or stop))
left = math.max(0, stop - at)
local looked, found, reply = 0, 0, {}

-- Messages of the place, with their scores.
local function choose(ids, scores)
  local list, chosen, theirs = filtered and taken(q, ids), {}, {}
  for i = 1, #ids do
    local meant = not list or list[i] == (place == 'unacked')
    if meant and skip > 0 then
      skip = skip - 1
    elseif meant then
      chosen[#chosen + 1], theirs[#theirs + 1] = ids[i], scores[i]
    end
  end
  return chosen, theirs
end

-- Bodies are read a few at a time, since they may be long.
local size = 1

local function show_all(ids, scores)
  local i = 1
  while i <= #ids and room > 0 do
    local some = { unpack(ids, i, math.min(i + size - 1, #ids)) }
    for k, m in ipairs(read(q, some)) do
      local text = m.body and element(m.id, m.body,
        place == 'rejected' and 0 or m.runs - held, m.extra)
      room = room - (text and #m.body + #(m.extra or '') or 0)
      if text and (needle == '' or text:find(needle, 1, true)) then
        reply[#reply + 1] = m.id
        reply[#reply + 1] = scores[i + k - 1]
        reply[#reply + 1] = text
      end
    end
    i, size = i + size, math.min(2 * size, 32)
  end
  return i > #ids and #ids or i - 1
end

while at < stop and looked < max and room > 0 do
  local n = math.min(filtered and 250 or size, max - looked, stop - at)
  local ids, scores = set_slice('ZRANGE', q.z, at, at + n - 1)
  id, score = ids[#ids], scores[#ids]
  ids, scores = choose(ids, scores)
  local shown = show_all(ids, scores)
  if shown < #ids then
    -- The next slice begins behind the last one shown.
    id, score = ids[shown], scores[shown]
    n = call('ZRANK', q.z, id) + 1 - at
  end
  at, looked, found = at + n, looked + n, found + shown
end
left = left - looked
local cursor = string.format('%.0f %.0f %s %s', left, skip, score or '', id or '')
return { cursor, found, left > 0 and 1 or 0, unpack(reply) }
