-- One step of taking a queue from dead connections.
--
--   KEYS  the queue's (see lib/place.lua), rejected, rmq::queues, rmq::connections;
--         then of each connection its unacked, heartbeat, consumers, queues, its
--         consumers and unacked in the form for a cluster; and, if they are ours, its
--         info, and what runs there; then, if such a one notified a queue, the keys of
--         a notice (see lib/notices.lua)
--   ARGV  queue, bytes of headers to show, where to begin showing (see below), how many
--         connections; of each its name, how many of the oldest messages may have been
--         running (slots), and how many stay for now (keep); then, if it is one only,
--         for each of its messages to settle: its header, its new header, where it goes
--         ('ready' or 'rejected'); and, with keys of a notice, the field of that for
--         outgoing (or '') and its element (or '')
--   reply for each connection, or fewer when that was enough for one call: an error, or
--         {moved, returned, rejected, left, 1 if the connection was unlisted,
--         header...}, or nothing done and left -1 when the heartbeat is there again, -2
--         when the queue has keys in the form for a cluster: only a cleaner of that
--         form finds the messages there, by what is listed here
--
-- First the messages behind the `keep` oldest go back to the front of ready, or of
-- their priority or tick, newest first, so that the oldest ends up in front; then those
-- to settle, which must be the newest that are left, in that order: they are known by
-- their headers only, since only those are replaced.  When none is left, the connection
-- is said not to have the queue any more, and is forgotten if that was its last.  Else,
-- unless many more are left, the headers of the `slots` oldest are shown, newest first:
-- '' is none, "\n" one that cannot be read.  So the last of the others and those to
-- settle go back in one step, and nobody gets the others first.
--
-- If where to begin is not '', nothing changes, and the headers are shown from that
-- index on.
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
local show, dry, n = tonumber(ARGV[2]), ARGV[3] ~= '', tonumber(ARGV[4])
local EACH, SETTLED = math.floor((#KEYS - 9) / n), 5 + 3 * n

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
  need(unacked, 'LRANGE', 'LMOVE', 'RPOP', 'LINDEX', 'DEL', 'SREM', 'SCARD')
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

-- How many went back, and how many to rejected.
local function settle_shown(unacked, left, notify, notified)
  local back, out = 0, 0
  for i = SETTLED, #ARGV, notify and 5 or 3 do
    local old, new, where, field, notice = unpack(ARGV, i, i + 4)
    -- Another cleaner may have been first.
    local element = back + out < left and call('LINDEX', unacked, 0)
    if not element or header(element) ~= old then
      break
    end
    local moved = new .. element:sub(#old + 1)
    if old == '\n' then
      call('LMOVE', unacked, q.ready, 'LEFT', 'RIGHT')
    elseif where == 'rejected' then
      call('LPUSH', rejected, moved)
      leave(q, options(element), 'done')
      tell(q, options(moved), 'rejected', new:match('"Mq%-Error":%["([^"]*)'))
      call('LTRIM', unacked, 1, -1)
    else
      give_back(q, moved, options(moved))
      call('LTRIM', unacked, 1, -1)
    end
    if where == 'rejected' then
      out = out + 1
    else
      back = back + 1
    end
    if notify and where == 'rejected' and notice ~= '' then
      send_notice(notify, notified, queues, field, notice)
    end
  end
  return back, out
end

-- Of the oldest, from one of them on.
local function add_headers(told, unacked, left, slots, from)
  local bytes, room = show, 1048576
  from = math.max(0, left - slots) + from
  while bytes > 0 and room > 0 and #told < 69 and from < left do
    local element = call('LINDEX', unacked, from)
    told[#told + 1] = header(element)
    bytes, room = bytes - #told[#told], room - #element
    spend(1, #element)
    from = from + 1
  end
  return told
end

local function reclaim(i)
  local first = 10 + (i - 1) * EACH
  local unacked, heartbeat, consumers, listed, other_consumers, other_unacked,
    info, running, notify, notified = unpack(KEYS, first, first + EACH - 1)
  local name, slots, keep = unpack(ARGV, 2 + 3 * i, 4 + 3 * i)
  slots, keep = tonumber(slots), tonumber(keep)

  if call('PTTL', heartbeat) > 0 then
    return { 0, 0, 0, -1, 0 }
  end
  if call('EXISTS', other_consumers, other_unacked) > 0 then
    return { 0, 0, 0, -2, 0 }
  end
  local left = call('LLEN', unacked)
  -- (LMOVE refuses the wrong type, too.)
  if keep > 0 or dry and left > 0 then
    check_once(q)
  end
  if keep > 0 then
    call('LLEN', rejected)
  end
  if dry then
    return add_headers({ 0, 0, 0, left, 0 }, unacked, left, slots, ARGV[3])
  end
  begin(unacked, notify)
  local moved, back, out, unlisted = 0, 0, 0, 0
  if left > keep then
    moved = give_back_newest(q, unacked, left - keep)
    left = left - moved
  end
  if left <= keep then
    back, out = settle_shown(unacked, left, notify, notified)
    left = left - back - out
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
  local told = { moved, back, out, left, unlisted }
  return left > slots + MOST and told
    or add_headers(told, unacked, left, slots, 0)
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
