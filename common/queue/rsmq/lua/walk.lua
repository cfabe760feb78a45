-- One step of a walk through the messages at one place, the first to be
-- received first.
--
--   KEYS  the queue's (see lib/layout.lua)
--   ARGV  'ready', 'delayed', 'unacked' or 'rejected', which is all of those in
--         a queue of rejected ones, where receives are no runs; the score and the
--         id of the message that the walk came to last ('' at its beginning); how
--         many of the place to step over; max messages; about how many bytes;
--         needle
--   reply {score and id of the last message, or what was given; how many it
--         looked at; how many of those are at the place, and were not stepped
--         over; how many of those that were to be stepped over are left; how
--         many messages follow; then of each with the needle in it: id, score,
--         message}
--
-- Changes nothing.

-- include layout
-- include walk

local q = queue_keys(1)
local place, score, id = ARGV[1], ARGV[2], ARGV[3]
local skip, max, room = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local needle = ARGV[7]
local filtered = place == 'delayed' or place == 'unacked'
local held = place == 'unacked' and 1 or 0
local at, stop = past(q, score, id), call('ZCARD', q.z)
local looked, found, reply = 0, 0, {}

if place == 'ready' then
  stop = visible(q)
elseif filtered then
  at = math.max(at, visible(q))
end
if not filtered then
  local over = math.max(0, math.min(skip, stop - at))
  at, skip = at + over, skip - over
end

-- The messages of the place.
local function choose(part)
  local ids, scores, chosen = {}, {}, {}
  for i = 1, #part, 2 do
    ids[#ids + 1] = part[i]
    scores[part[i]] = part[i + 1]
  end
  if not filtered then
    return ids, scores
  end
  local list = taken(q, ids)
  for i = 1, #ids do
    if list[i] == (place == 'unacked') then
      if skip > 0 then
        skip = skip - 1
      else
        chosen[#chosen + 1] = ids[i]
      end
    end
  end
  return chosen, scores
end

-- Bodies are read a few at a time: nobody knows how long the next ones are.
local size = 1

local function show_all(ids, scores)
  local i = 1
  while i <= #ids and room > 0 do
    local some = { unpack(ids, i, math.min(i + size - 1, #ids)) }
    for _, m in ipairs(read(q, some)) do
      -- An id without a body is no message.
      local text = m.body and element(m.id, m.body,
        place == 'rejected' and 0 or m.runs - held, m.extra)
      room = room - (text and #m.body + #(m.extra or '') or 0)
      if text and (needle == '' or text:find(needle, 1, true)) then
        reply[#reply + 1] = m.id
        reply[#reply + 1] = scores[m.id]
        reply[#reply + 1] = text
      end
    end
    i, size = i + size, math.min(2 * size, 32)
  end
  return i > #ids and #ids or i - 1
end

while at < stop and looked < max and room > 0 do
  local n = math.min(filtered and 250 or size, max - looked, stop - at)
  local part = call('ZRANGE', q.z, at, at + n - 1, 'WITHSCORES')
  local ids, scores = choose(part)
  local shown = show_all(ids, scores)
  id, score = part[#part - 1], part[#part]
  if shown < #ids then
    -- The next slice begins behind the last one shown.
    id, score = ids[shown], scores[ids[shown]]
    n = call('ZRANK', q.z, id) + 1 - at
  end
  at, looked, found = at + n, looked + n, found + shown
end
return { score, id, looked, found, skip, math.max(0, stop - at), unpack(reply) }
