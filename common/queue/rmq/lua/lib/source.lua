-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Walks through the messages of a place, the next to be claimed first.  Needs basics.
--
-- A place has up to three sources: lists, whose oldest message is at the right end, or ranges
-- of scores in a sorted set.

-- include cursor

local function sources(place, q, list)
  local line = string.format('%.0f', IN_LINE)
  local timed = { key = q.delayed, low = '-inf', high = '(' .. line }
  local in_line = { key = q.delayed, low = line, high = '+inf' }
  return ({ delayed = { { key = q.delayed, low = '-inf', high = '+inf' } },
    timed = { timed },
    -- If all are dropped in this order, no message in line has its turn meanwhile.
    line = { in_line, timed },
    ready = { { key = q.priority, low = '-inf', high = '(0' }, { key = q.ready },
      { key = q.priority, low = '(0', high = '+inf' } } })[place]
    or { { key = list } }
end

local function count(s)
  return s.low and call('ZCOUNT', s.key, s.low, s.high) or call('LLEN', s.key)
end

-- Number of members of a set before the source.
local function rank_of(s)
  return call('ZCARD', s.key) - call('ZCOUNT', s.key, s.low, '+inf')
end

-- The position of a walk: a text, and the last message behind the walk, the anchor:
--
--   part   the number of the source
--   left   messages to look at: those that were in the source when the walk came there
--   from   messages of the source behind the walk
--   span   of these, messages that the last step looked at
--   aside  1 if the walk has brought messages aside; see move.lua
--   score  of the anchor, in a set
local function parse_walk(text, anchor)
  local part, left, from, span, aside, score =
    text:match('^(%d+) (%d+) (%d+) (%d+) (%d) (%S*)$')
  return { part = tonumber(part or 0), left = tonumber(left or 0),
    from = tonumber(from or 0), span = tonumber(span or 0),
    aside = tonumber(aside or 0), score = score, anchor = anchor }
end

local function print_walk(w)
  return string.format('%.0f %.0f %.0f %.0f %d %s', w.part, w.left, w.from, w.span,
    w.aside, w.score or '')
end

-- Number of messages behind the walk now: meanwhile other programs claim and add some.
local function find_walk(s, w)
  if w.from == 0 then
    return 0
  elseif s.low then
    return math.max(0, past(s.key, w.score, w.anchor) - rank_of(s))
  end
  local at = locate(s.key, w.from, 2000, 1048576, function(element)
    return element == w.anchor
  end)
  -- LPOS takes some 25 ns an element, so it is bounded.
  local found = not at
    and call('LPOS', s.key, w.anchor, 'RANK', -1, 'MAXLEN', 200000)
  return at or found and call('LLEN', s.key) - found or 0
end
