-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Release locks whose holder is gone, or begin or end a search for late messages.
--
-- KEYS q:PLACES
-- ARGV how dry (field value)...
-- NEEDS HGET HMGET HSET HDEL ZRANGEBYSCORE GET ZADD LPUSH ZREM
--
--   how    'free': release locks
--          'begin': a census begins that rejects late messages and notes the bounds of all
--          others anew; the old bounds stay in E and T
--          'end': that census has seen all messages
--   dry    '1': change nothing
--   field  of a lock, and its value ('' for a group with a free slot and messages in
--          line).  A lock that has another value now is left alone; see census.c
--   reply  'free': number of locks released; else 1
--
-- At most 200 locks in one step.
-- The member of a batch that is gone counts as one with an unknown end.
--
-- A crash before: nothing has happened.  After: the locks are free, and the next messages of
-- the groups, and followers of batches, are claimable, or wait for their time.

-- include place

local released = 0
dry = dry == '1'

if not dry then
  need()
  call('ZREM', q.delayed, '')
end
if how == 'begin' then
  for now_known, before in pairs({ e = 'E', t = 'T' }) do
    note_bound(q, before, tonumber(call('HGET', q.locks, now_known) or nil))
    call('HDEL', q.locks, now_known)
  end
  return 1
elseif how == 'end' then
  call('HDEL', q.locks, 'E', 'T')
  return 1
end
for i = first_field, #ARGV, each_field do
  local field, value = unpack(ARGV, i, i + 1)
  local line, n = field:match('^g(' .. ('%x'):rep(13) .. ')(%x*)$')
  local is_free = value == '' or call('HGET', q.locks, field) == value
  local turns
  if is_free and line then
    local slots, limit = slots_of(q, line)
    turns = turns_of(q, line, slots, limit, value ~= '' and (tonumber(n, 16) or 1))
    is_free = turns[1] or turns.freed
  end
  if is_free then
    released = released + 1
    if not dry and line then
      begin_turns(q, turns)
    elseif not dry and field:sub(1, 1) == 'm' then
      in_batches().close(q, field:sub(2), value:match('^%S+ (.*) %d+$'), 'unknown')
    elseif not dry then
      call('HDEL', q.locks, field)
    end
  end
end
return released
