-- One step of taking one queue from a dead connection.
--
--   KEYS  the queue's (see lib/place.lua), unacked, rejected, the connection's
--         heartbeat, consumers, the connection's queues, rmq::queues,
--         rmq::connections, its consumers and unacked in the form for a cluster;
--         then, of one of ours, its info, and what runs there; then, if such
--         a one notified a queue, the keys of a notice (see lib/notices.lua)
--   ARGV  queue, connection, how many of the oldest messages may have been
--         running (keep), bytes of headers to show, where to begin showing (see
--         below), then for each message to settle: its header, its new header,
--         where it goes ('ready' or 'rejected'); and, with keys of a notice, the
--         field of that for outgoing (or '') and its element (or '')
--   reply {moved, returned, rejected, left, 1 if the connection was unlisted,
--         header...}, or nothing done and left -1 when the heartbeat is there
--         again, -2 when the queue has keys in the form for a cluster: only a
--         cleaner of that form finds the messages there, by what is listed here
--
-- First the messages behind the `keep` oldest go back to the front of ready, or
-- of their priority or tick, newest first, so that the oldest ends up in front;
-- then those to settle,
-- which must be the newest that are left, in that order: they are known by
-- their headers only, since only those are replaced.  When none is left, the
-- connection is said not to have the queue any more, and is forgotten if that
-- was its last.  Else the headers of the newest that are left are shown: '' is
-- none, "\n" one that cannot be read.
--
-- If where to begin is not '', nothing changes, and the headers of the `keep`
-- oldest are shown from that index on, newest first.  So the last of the others
-- and those to settle go back in one step, and nobody gets the others first.
--
-- Bounded: at most 500 messages or about 1 MiB (but 8 in any case) a call.
-- A crash between two calls leaves connection and queue listed, and the rest
-- of the messages unacked: the next cleaner goes on from there.  Each message
-- is, and its locks are, as before or as after.

-- include place
-- include give_back
-- include notices

local q, unacked, rejected, heartbeat, consumers, listed, queues, connections,
  other_consumers, other_unacked, info, running, notify, notified = queue_keys(1)
local keep, show = tonumber(ARGV[3]), tonumber(ARGV[4])

if call('PTTL', heartbeat) > 0 then
  return { 0, 0, 0, -1, 0 }
end
if call('EXISTS', other_consumers, other_unacked) > 0 then
  return { 0, 0, 0, -2, 0 }
end

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

local dry = ARGV[5] ~= ''
local left = call('LLEN', unacked)
-- To be called before anything moves.  (LMOVE refuses the wrong type, too.)
local checked = false
local function check_once()
  if not checked then
    check_types(q)
    checked = true
  end
end
if keep > 0 or dry and left > 0 then
  check_once()
end
if keep > 0 then
  call('LLEN', rejected)
end

local function settle(element, old, new, where, field, notice)
  local moved = new .. element:sub(#old + 1)
  if where == 'rejected' then
    call('LPUSH', rejected, moved)
    leave(q, options(element), 'done')
    tell(q, options(moved), 'rejected', new:match('"Mq%-Error":%["([^"]*)'))
    if notify and notice ~= '' then
      send_notice(notify, notified, queues, field, notice)
    end
  else
    give_back(q, moved, options(moved))
  end
  call('LTRIM', unacked, 1, -1)
end

local from = 0
local moved, back, out, unlisted = 0, 0, 0, 0
if dry then
  from = math.max(0, left - keep) + ARGV[5]
else
  need(unacked, 'LRANGE', 'LMOVE', 'RPOP', 'LINDEX', 'DEL', 'SREM', 'SCARD')
  need_admit(q)
  need_leave(q)
  need_tell(q)
  if notify and ARGV[9] then
    check_notice(notify, ARGV[9])
  end
  -- Changes nothing and needs no memory; see claim.lua.
  call('LTRIM', unacked, 0, -1)
  -- On a cluster that is the cleaner's next step, before the connection forgets it.
  if queues == 'rmq::queues' then
    call('SADD', queues, ARGV[1])
  end
  if left > keep then
    moved = give_back_newest(q, unacked, left - keep)
    left = left - moved
  end
  for i = 6, #ARGV, notify and 5 or 3 do
    -- Another cleaner may have been first.
    local element = left > 0 and left <= keep
      and call('LINDEX', unacked, 0)
    if not element or header(element) ~= ARGV[i] then
      break
    end
    if ARGV[i] == '\n' then
      call('LMOVE', unacked, q.ready, 'LEFT', 'RIGHT')
      back = back + 1
    else
      settle(element, ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3],
        ARGV[i + 4])
      if ARGV[i + 2] == 'rejected' then
        out = out + 1
      else
        back = back + 1
      end
    end
    left = left - 1
  end
  if left == 0 then
    call('DEL', consumers)
    call('SREM', listed, ARGV[1])
    if call('SCARD', listed) == 0 then
      unlisted = call('SREM', connections, ARGV[2])
      if info then
        call('DEL', info, running)
      end
    end
  end
end

local reply = { moved, back, out, left, unlisted }
local room = 1048576
while show > 0 and room > 0 and #reply < 69 and from < left
    and (left <= keep or dry) do
  local element = call('LINDEX', unacked, from)
  reply[#reply + 1] = header(element)
  show = show - #reply[#reply]
  room = room - #element
  from = from + 1
end
return reply
