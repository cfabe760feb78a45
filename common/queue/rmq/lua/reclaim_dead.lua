-- One step of taking a queue from dead connections.
--
--   KEYS  the queue's (see lib/place.lua), rejected, rmq::queues, rmq::connections;
--         then of each connection its unacked, heartbeat, consumers, queues, its
--         consumers and unacked in the form for a cluster; and, if they are ours, its
--         info, and what runs there; then, if such a one notified a queue, the keys of
--         a notice (see lib/notices.lua)
--   ARGV  queue, bytes of headers to show, how many of the oldest messages were looked
--         at before, '1' to change nothing, how many connections; of each its name, and
--         how many of the oldest messages may have been running (slots); then, if it is
--         one only, for each of its messages to settle: its header, its new header,
--         where it goes ('ready' or 'rejected'); and, with keys of a notice, the field of
--         that for outgoing (or '') and its element (or '')
--   reply for each connection, or fewer when that was enough for one call: an error, or
--         {moved, returned, rejected, left, 1 if the connection was unlisted, how many
--         of the oldest were looked at, header...}, or nothing done and left -1 when the
--         heartbeat is there again, -2 when the queue has keys in the form for a
--         cluster: only a cleaner of that form finds the messages there, by what is
--         listed here
--
-- First the messages behind the `slots` oldest go back to the front of ready, or of
-- their priority or tick, newest first, so that the oldest ends up in front.  Those to
-- settle are the next of the oldest, in that order, known by their headers only, since
-- only those are replaced.  The rejected ones go to the newest end of that list, the
-- oldest first; the others stay until all have been looked at, and go back then, newest
-- first.  When none is left, the connection is said not to have the queue any more, and
-- is forgotten if that was its last.  Else, unless many more are left, headers are shown,
-- the oldest first: of the next ones, or of the newest when all have been looked at.  ''
-- is none, "\n" one that cannot be read.
--
-- Until the last of the oldest can be settled, or one is rejected (those that may have
-- been running are found by their number), 500 others stay: they go back in one step
-- with those to settle, and nobody gets the others first.
--
-- Bounded: at most 500 messages or about 1 MiB (but 8 in any case) a call.
-- A crash between two calls leaves connection and queue listed, and the rest of the
-- messages unacked: the next cleaner goes on from there.  Each message is, and its
-- locks are, as before or as after; so is each connection, and an error about one keeps
-- no other from its turn.

-- include place
-- include give_back
-- include notices

local q, rejected, queues, connections = queue_keys(1)
local show, dry, n = tonumber(ARGV[2]), ARGV[4] == '1', tonumber(ARGV[5])
local EACH, SETTLED = math.floor((#KEYS - 9) / n), 6 + 2 * n

local function header(element)
  if element:sub(1, 5) ~= '\255\0\190\190J' then
    return ''
  end
  local stop = element:find('\n', 6, true)
  if not stop or stop > 262144 then
    return '\n'
  end
  return element:sub(1, stop)
end

-- Before the first change.  The keys of the other connections are permitted as those of
-- the first are: the call has all of them.
local begun = false
local function begin(unacked, notify)
  if begun then
    return
  end
  need(unacked, 'LRANGE', 'LMOVE', 'RPOP', 'LINDEX', 'LREM', 'LSET', 'DEL', 'SREM',
    'SCARD')
  need_admit(q)
  need_leave(q)
  need_tell(q)
  if notify and ARGV[SETTLED + 3] then
    check_notice(notify, ARGV[SETTLED + 3])
  end
  -- Changes nothing and needs no memory; see claim.lua.
  call('LTRIM', unacked, 0, -1)
  -- On a cluster that is the cleaner's next step, before the connection forgets it.
  if queues == 'rmq::queues' then
    call('SADD', queues, ARGV[1])
  end
  begun = true
end

-- How many stay for now.
local function count_kept(left, slots, from, each)
  local rejects = false
  for i = SETTLED, #ARGV, each do
    from = from + 1
    rejects = rejects or ARGV[i + 2] == 'rejected'
  end
  return (rejects or from >= math.min(left, slots)) and slots or slots + MOST
end

-- How many went back as they are, with a new header, and to rejected; and how many of the
-- oldest have been looked at by now (nil: all).
local function settle_shown(unacked, left, from, each, notify, notified)
  local stay, same, back, out = {}, 0, 0, 0
  local mark = redis.sha1hex(now_us .. unacked)
  for i = SETTLED, #ARGV, each do
    local old, new, where, field, notice = unpack(ARGV, i, i + 4)
    -- Another cleaner may have been first.
    local element = call('LINDEX', unacked, -1 - from - #stay)
    if not element or header(element) ~= old then
      break
    end
    local moved = new .. element:sub(#old + 1)
    if where == 'rejected' then
      call('LPUSH', rejected, moved)
      -- By its place, as equal ones may be there; no element is equal to the mark.
      call('LSET', unacked, -1 - from - #stay, mark)
      call('LREM', unacked, -1, mark)
      leave(q, options(element), 'done')
      tell(q, options(moved), 'rejected', new:match('"Mq%-Error":%["([^"]*)'))
      out = out + 1
      if notify and notice ~= '' then
        send_notice(notify, notified, queues, field, notice)
      end
    else
      stay[#stay + 1] = { moved, new == old }
    end
  end
  if from + #stay < left - out then
    return 0, 0, out, from + #stay
  end
  for i = #stay, 1, -1 do
    local moved, is_same = unpack(stay[i])
    if is_same then
      same = same + 1
      call('LMOVE', unacked, q.ready, 'LEFT', 'RIGHT')
    else
      back = back + 1
      give_back(q, moved, options(moved))
      call('LTRIM', unacked, 1, -1)
    end
  end
  return same, back, out
end

-- Of the `slots` oldest, behind those looked at; or, if all were, the last of them.
local function add_headers(told, unacked, left, slots, from)
  local bytes, room, last = show, 1048576, math.min(left, slots)
  local at = from or last - 1
  while bytes > 0 and room > 0 and #told < 70 and at >= 0 and at < last do
    local element = call('LINDEX', unacked, -1 - at)
    local head = header(element)
    table.insert(told, from and #told + 1 or 7, head)
    bytes, room = bytes - #head, room - #element
    spend(1, #element)
    at = at + (from and 1 or -1)
  end
  told[6] = from or at + 1
  return told
end

local function reclaim(i)
  local first = 10 + (i - 1) * EACH
  local unacked, heartbeat, consumers, listed, other_consumers, other_unacked,
    info, running, notify, notified = unpack(KEYS, first, first + EACH - 1)
  local name, slots = ARGV[4 + 2 * i], tonumber(ARGV[5 + 2 * i])
  local from, each = tonumber(ARGV[3]), notify and 5 or 3

  local ttl = call('PTTL', heartbeat)
  -- A lease by receipt is over before its key; see extend.lua.
  if ttl > 0 and not (ttl < 500 and info and call('HEXISTS', info, 'lease') == 1) then
    return { 0, 0, 0, -1, 0, 0 }
  end
  if call('EXISTS', other_consumers, other_unacked) > 0 then
    return { 0, 0, 0, -2, 0, 0 }
  end
  local left = call('LLEN', unacked)
  -- (LMOVE refuses the wrong type, too.)
  if slots > 0 or dry and left > 0 then
    check_once(q)
  end
  if slots > 0 then
    call('LLEN', rejected)
  end
  if dry then
    return add_headers({ 0, 0, 0, left, 0, 0 }, unacked, left, slots, from)
  end
  begin(unacked, notify)
  local keep = count_kept(left, slots, from, each)
  local moved, same, back, out, unlisted = 0, 0, 0, 0, 0
  if left > keep then
    moved = give_back_newest(q, unacked, left - keep)
    left = left - moved
  end
  if left <= keep then
    same, back, out, from = settle_shown(unacked, left, from, each, notify,
      notified)
    left = left - same - back - out
  end
  if left == 0 then
    call('DEL', consumers)
    call('SREM', listed, ARGV[1])
  end
  if left == 0 and call('SCARD', listed) == 0 then
    if info then
      call('DEL', info, running)
    end
    unlisted = call('SREM', connections, name)
  end
  local told = { moved + same, back, out, left, unlisted, 0 }
  return left > slots + MOST and told
    or add_headers(told, unacked, left, slots, from)
end

local reply = {}
for i = 1, n do
  if i > 1 and is_enough() then
    break
  end
  local good, told = pcall(reclaim, i)
  reply[i] = (good or told.err) and told or redis.error_reply(told)
end
return reply
