-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- One step of a walk through the messages of a place.
--
-- KEYS q:PLACES [list=*]
-- ARGV place cursor anchor skip max bytes needle
--
--   list    if place is 'rejected' or 'unacked', that list
--   place   'ready', 'delayed', 'unacked', 'rejected', or 'line' (see lib/source.lua)
--   cursor  where the walk is ('' at the beginning)
--   skip    how many messages to step over at the beginning
--   max     messages
--   bytes   about how many
--   reply {cursor; the anchor, or 0 if that is the last element below; number of messages
--         looked at; 1 if more may follow; 1 and element..., or 2 and (member score)...:
--         messages with the needle in them}
--
-- Messages that come into a source after its first step are not looked at: they may come
-- as quickly as the walk goes on.
-- Changes nothing.

-- include basics
-- include source

local all, w = sources(place, q, list), parse_walk(cursor, anchor)
local room = tonumber(bytes)
skip, max = cursor == '' and tonumber(skip) or 0, tonumber(max)

local s = all[w.part]
if s then
  local from = find_walk(s, w)
  -- Without the anchor, the walk through the source begins again.
  w.left = math.max(0,
    math.min(w.left + (from == 0 and w.from or 0), count(s) - from))
  w.from = from
end
while w.left <= 0 and all[w.part + 1] do
  w.part = w.part + 1
  s = all[w.part]
  local n = count(s)
  w.from = math.min(skip, n)
  w.left, skip = n - w.from, skip - w.from
end

local reply, last = {}, nil

local function see(element, score)
  last, w.score, room = element, score, room - #element
  if needle == '' or element:find(needle, s.low and 33 or 1, true) then
    reply[#reply + 1] = element
    reply[#reply + 1] = score
  end
  return room <= 0
end

local first = w.from + (s.low and rank_of(s) or 0)
w.span = go_through(s.key, s.low and 'ZRANGE', first, math.min(max, w.left), see)
w.from, w.left = w.from + w.span, w.left - w.span
local each = s.low and 2 or 1
local shown = last and reply[#reply + 1 - each] == last
return { print_walk(w), not last and anchor or shown and 0 or last, w.span,
  (w.left > 0 or all[w.part + 1]) and 1 or 0, each, unpack(reply) }
