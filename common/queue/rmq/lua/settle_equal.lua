-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Settle messages of an unacked list, all or none, of which some are equal.
--
-- KEYS unacked ready delayed rejected known
-- ARGV how...
-- NEEDS LREM LSET LPUSH RPUSH ZADD
--
--   how    for each message 'ack', 'reject', 'front', or 'again', and the element; and
--          unless it is 'ack', header, offset, ms and unique, as of settle.lua; the messages
--          have no options
--   reply  1; 0 and nothing done: unacked has not all messages
--
-- A crash before: all messages are unacked.  After: each is in its new place only.
-- The oldest of equal elements are removed.  A consumer that gets no reply finds as many
-- equal ones as before, or fewer by the number settled: no other settlement of them is under
-- way.

-- include rights
-- include remove

local call, time = redis.call, redis.call('TIME')
local now = math.floor(time[1] * 1000 + time[2] / 1000)

local times, moves, i = {}, {}, first_how
while ARGV[i] do
  local how, element, header, offset, ms, unique = unpack(ARGV, i, i + 5)
  times[element] = (times[element] or 0) + 1
  i = i + 2
  if how ~= 'ack' then
    moves[#moves + 1] = { how = how, element = header .. element:sub(offset + 1),
      ms = tonumber(ms), unique = unique }
    i = i + 4
  end
end

-- The write that may be refused comes before the removal.
need()
if moves[1] then
  call('LLEN', ready)
  call('LLEN', rejected)
  call('ZCARD', delayed)
end
for element, n in pairs(times) do
  if #call('LPOS', unacked, element, 'RANK', -1, 'COUNT', n) < n then
    return 0
  end
end
-- LTRIM changes nothing and needs no memory; see claim.lua.
call('LTRIM', unacked, 0, -1)
for _, m in ipairs(moves) do
  if m.how == 'reject' then
    call('LPUSH', rejected, m.element)
  elseif m.how == 'front' then
    call('RPUSH', ready, m.element)
  elseif m.ms > 0 then
    call('ZADD', delayed, now + m.ms, m.unique .. m.element)
  else
    call('LPUSH', ready, m.element)
  end
end
for element, n in pairs(times) do
  remove(unacked, element, n)
end
-- As make_known() of lib/place.lua.
local queue = moves[1] and ready:match('%[(.*)%]')
if queue then
  redis.pcall('SADD', known, queue)
end
return 1
