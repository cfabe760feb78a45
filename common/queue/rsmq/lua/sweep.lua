-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- One step of a cleaner's walk through the messages of a queue.
--
-- KEYS q:PLACES counters later | to:PLACES names
-- ARGV score id looks attempts consumed dry to_name
--
--   score, id  of the walk's last message ('' at its beginning)
--   looks      how many messages to look at
--   attempts   how often a message may be received, unless the counters say it
--   consumed   '1': a consumer of these tools has the queue now
--   dry        '1': change nothing
--   to_name    of the queue of rejected messages
--   reply {score and id of the last message; messages that follow; number of ids without a
--         body that were removed; and of messages that were rejected, as they were too late,
--         and after their last run}
--
-- The limit of receives holds only for queues that these tools have counted something in, or
-- consume now.
--
-- An id without a body is removed when it is a minute old.  A message is rejected if it can
-- be received again after all its runs, and the last one did not ask for another; or if it is
-- too late to run: at most 50 in one step.
--
-- A crash before: nothing has happened.  After: each message is in its place only.

-- include layout
-- include walk
-- include moves
-- include headers

dry = dry == '1'
local limit = (consumed == '1' or call('EXISTS', counters) == 1)
  and (tonumber(redis.pcall('HGET', counters, 'attempts')) or tonumber(attempts))
local extras = call('EXISTS', q.x) == 1
local orphans, found = {}, {}
local late, crashed = 0, 0

-- Further headers of a rejected message; those that cannot be parsed are dropped.
local function rejected(extra, runs, is_late)
  local headers = parse_headers('{' .. (extra or '') .. '}') or {}
  if is_late then
    headers['Mq-Error'] = { 'expired' }
  else
    note_crash(headers, now, runs, true, '')
  end
  return write_headers(headers)
end

local function most_runs(extra)
  local own = extra and tonumber(extra:match('"Mq%-Attempts":%["(%d+)"%]'))
  return own and own > 0 and math.min(own, limit) or limit
end

local function look(ids, scores)
  local runs = received(q, ids)
  local extra = extras and call('HMGET', q.x, unpack(ids)) or {}
  local waits = await_run(q, ids)
  for i = 1, #ids do
    local n, is_due = whole(runs[i]) or 0, tonumber(scores[i]) <= now
    local idle = is_due or n == 0 or waits[i]
    local expires = extra[i]
      and tonumber(extra[i]:match('"Mq%-Expires":%["(%d+)"%]'))
    if call('HEXISTS', q.h, ids[i]) == 0 then
      if is_torn(q, ids[i]) then
        orphans[#orphans + 1] = ids[i]
      end
    elseif limit and is_due and not waits[i] and n >= most_runs(extra[i])
        or idle and expires and now > expires then
      local is_late = expires and now > expires
      found[#found + 1] = { id = ids[i], late = is_late,
        extra = not dry and rejected(extra[i], n, is_late) }
      if #found == 50 then
        return i
      end
    end
  end
end

if not dry then
  promote(q, later)
end
local left
score, id, left = go_on(q, past(q.z, score, id), tonumber(looks), look)
if #orphans > 0 and not dry then
  forget(q, orphans)
end
if #found > 0 and not dry then
  be_sure(q, to, true)
  create_as(q, to, names, to_name)
end
for _, f in ipairs(found) do
  local m = { id = f.id, body = not dry and call('HGET', q.h, f.id), extra = f.extra }
  if dry or hand_over(q, to, m, 0) then
    late, crashed = late + (f.late and 1 or 0), crashed + (f.late and 0 or 1)
  end
end
return { score, id, left, #orphans, late, crashed }
