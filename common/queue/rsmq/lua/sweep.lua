-- One step of a cleaner's walk through the messages of a queue.
--
-- KEYS q:PLACES counters later
-- ARGV score id looks attempts consumed dry
--
--   score, id  of the walk's last message ('' at its beginning)
--   looks      how many messages to look at
--   attempts   how often a message may be received, unless the counters say it
--   consumed   '1': a consumer of these tools has the queue now
--   dry        '1': change nothing
--   reply {score and id of the last message; messages that follow; number of ids without a
--         body that were removed; then for each message to be rejected, its id, number of
--         receives, and further headers}
--
-- The limit of receives holds only for queues that these tools have counted something in, or
-- consume now.
--
-- An id without a body is removed when it is a minute old.  A message is to be rejected if it
-- can be received again after all its runs, and the last one did not ask for another; or if
-- it is too late to run.
--
-- A crash before: nothing has happened.  After: nothing is lost.

-- include layout
-- include walk
-- include moves

dry = dry == '1'
local limit = (consumed == '1' or call('EXISTS', counters) == 1)
  and (tonumber(redis.pcall('HGET', counters, 'attempts')) or tonumber(attempts))
local extras = call('EXISTS', q.x) == 1
local orphans, found = {}, {}

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
      found[#found + 1] = ids[i]
      found[#found + 1] = n
      found[#found + 1] = extra[i] or ''
    end
  end
end

if not dry then
  promote(q, later)
end
local left
score, id, left = go_on(q, past(q.z, score, id), tonumber(looks), look)
if #orphans > 0 and not dry then
  need_forget(q)
  probe(q)
  forget(q, orphans)
end
return { score, id, left, #orphans, unpack(found) }
