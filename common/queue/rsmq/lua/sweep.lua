-- One step of a cleaner's walk through the messages of a queue.
--
-- KEYS q:PLACES counters later
-- ARGV score id looks attempts consumed dry
--
--   score, id  of the message that the walk came to last ('' at its beginning)
--   looks      how many messages to look at
--   attempts   how often a message may be received unless the counters say it
--   consumed   '1': a program of ours consumes the queue now
--   dry        '1': it changes nothing
--   reply {score and id of the last; how many follow; how many members without
--         a body were removed; then of each message that should be rejected,
--         its id, how often it was received, its further headers}
--
-- How often a message is received is nothing to us where no program of ours has
-- ever counted anything.
--
-- A member without a body goes if it has been there for a minute.  To be
-- rejected is what can be received again after all its runs, none of which has
-- said that there should be another; and what is too late to be run.
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
    elseif limit and is_due and n >= limit and not waits[i]
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
