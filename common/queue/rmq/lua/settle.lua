-- End a message's stay in an unacked list.
--
--   KEYS  the queue's (see lib/place.lua), unacked, rmq::queues, then for 'reject'
--         and 'expire' rejected, for 'push' the keys of the other queue, or on a
--         cluster outgoing; then by receipt the connection's heartbeat and info;
--         then with a notice its keys (see lib/notices.lua)
--   ARGV  how, element, header, offset, milliseconds, 32 bytes that make it
--         unique, or the field for outgoing, number of the receipt or '', then if it has a
--         result or a notice: the id (or ''), the text, and how many
--         milliseconds to keep it; then the field for outgoing (or '') and the
--         element of the notice
--   how   'ack': it is gone
--         'reject': to the newest end of rejected
--         'expire': there, too, without having run: no key outlives that
--         'front': to be claimed before all others of its kind
--         'again': after so many milliseconds, behind the others
--         'push': to the other queue
--         What moves on is the header and the element from the offset on (0 is
--         its beginning), so that a large payload is sent only once.
--   A notice is one more message, for a queue that hears of each end.
--   reply 1, or 0 when the element is not there: the lease was lost; or when
--         the lease of a receipt is over, or the receipt was used
--
-- A crash before: it is still unacked.  After: it is in its new place only, or in
-- outgoing.
-- The write that may be refused (wrong type) comes before the removal, so a
-- refusal changes nothing.

-- include leaving
-- include remove
-- include results
-- include notices

local q, unacked, queues = queue_keys(1)
local how, element, ms = ARGV[1], ARGV[2], tonumber(ARGV[5])

local result, notice = ARGV[8] and ARGV[8] ~= '', ARGV[12]
local receipt = ARGV[7] ~= '' and 'receipt:' .. ARGV[7]
-- What only some calls have, in this order: where it goes, what a receipt and what a
-- notice needs.
local more = { unpack(KEYS, 9) }
local rejected, outgoing, to, heartbeat, info, notify, notified

if how == 'reject' or how == 'expire' then
  rejected = table.remove(more, 1)
elseif how == 'push' and more[1]:sub(-10) == '::outgoing' then
  -- To another queue of a cluster; see outgoing.lua.
  outgoing = table.remove(more, 1)
elseif how == 'push' then
  to, more = queue_keys(9), { unpack(KEYS, 15) }
end
if receipt then
  heartbeat, info = table.remove(more, 1), table.remove(more, 1)
end
if notice then
  notify, notified = unpack(more)
end

-- Of equal elements, the oldest one.
if how ~= 'ack' and not call('LPOS', unacked, element, 'RANK', -1) then
  return 0
end
-- See extend.lua.
if receipt and (call('PTTL', heartbeat) < 500
    or call('HEXISTS', info, receipt) == 0) then
  return 0
end
local w = options(element)
local moved = ARGV[3] .. element:sub(ARGV[4] + 1)
local v = ARGV[3] == '' and w or options(moved)
need_remove(unacked, element)
if w and (w.line or w.key) then
  need_leave(q)
  call('HLEN', q.locks)
end
-- The next of its group, and whether it can go where it is to go.  What is pushed may
-- come into line in the same queue, and is the next then.
local turn
if w and w.line and how == 'push' then
  check_types(q)
elseif w and w.line and how ~= 'front' and how ~= 'again' then
  turn = turn_after(q, w)
  if turn and turn.member then
    call('LLEN', q.ready)
  end
  if turn and turn.member and (turn.v.tick or turn.v.priority ~= 0) then
    check_types(q)
  end
end
if receipt then
  need(info, 'HDEL')
end
if result then
  need_tell(q)
end
if notice then
  check_notice(notify, ARGV[11])
end

if how == 'ack' and remove(unacked, element, 1) == 0 then
  return 0
elseif how == 'ack' then
  leave(q, w, 'done', turn)
else
  -- First a write that needs no memory; see claim.lua.
  call('LTRIM', unacked, 0, -1)
  -- Acks are many, and take less time than it takes to define what is in here.
-- include place

  if outgoing then
    need(outgoing, 'HSET')
    call('HSET', outgoing, ARGV[6], moved)
  elseif rejected then
    call('LPUSH', rejected, moved)
  elseif to then
    check_types(to)
    -- If the message comes back, no earlier result must be left.
    if v and v.reply_to then
      call('DEL', to.results .. v.reply_to)
    end
    if v then
      moved, v = prepare(to, moved, v)
    end
    admit(to, moved, v, 0, ARGV[6])
  elseif how == 'again' and ms > 0 then
    refresh_locks(q, v)
    call('ZADD', q.delayed, now + ms, ARGV[6] .. moved)
  else
    refresh_locks(q, v)
    place(q, moved, v, how == 'front')
  end
  remove(unacked, element, 1)
  make_known(to or q, queues)
  if how ~= 'front' and how ~= 'again' then
    leave(q, w, how == 'expire' and 'vanish' or 'done', turn)
  elseif v and v.key and v.unique == 'queued' then
    lock(q, v, false, how == 'again' and ms > 0 and now + ms)
  end
end
if receipt then
  call('HDEL', info, receipt)
end
if result then
  keep_result(q, ARGV[8], ARGV[9], ARGV[10])
end
if notice then
  send_notice(notify, notified, queues, ARGV[11], notice)
end
return 1
