-- One step of a walk through the messages at one place, the first to be received first.
--
--   KEYS  the queue's (see lib/layout.lua)
--   ARGV  'ready', 'delayed', 'unacked' or 'rejected', which is all of those in a queue
--         of rejected ones, where receives are no runs; the score and the id of the
--         message that the walk came to last ('' at its beginning); how many of the
--         place to step over; max messages; about how many bytes; needle
--   reply {score and id of the last message, or what was given; how many it looked at;
--         how many of those are at the place, and were not stepped over; how many of
--         those that were to be stepped over are left; how many messages follow; then
--         of each with the needle in it: id, score, message}
--
-- Changes nothing.

-- include layout
-- include walk

local q = queue_keys(1)
local place, score, id = ARGV[1], ARGV[2], ARGV[3]
local skip, max, room = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local needle = ARGV[7]
local filtered, held = is_hidden(place), place == 'unacked' and 1 or 0
local at, stop = locate(q, place, score, id)
local looked, found, reply = 0, 0, {}

if not filtered then
  local over = math.max(0, math.min(skip, stop - at))
  at, skip = at + over, skip - over
end

-- Those of the place, with their scores.
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

-- Bodies are read a few at a time: nobody knows how long the next ones are.
local size = 1

local function show_all(ids, scores)
  local i = 1
  while i <= #ids and room > 0 do
    local some = { unpack(ids, i, math.min(i + size - 1, #ids)) }
    for k, m in ipairs(read(q, some)) do
      -- An id without a body is no message.
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
return { score, id, looked, found, skip, math.max(0, stop - at), unpack(reply) }
