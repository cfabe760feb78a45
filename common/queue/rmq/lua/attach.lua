-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Note that a message refers to a set of attachments, or that the set has a file.
--
-- KEYS key=*
-- ARGV name new [about]
--
--   key    a hash: the ids of messages that refer to the set, or the set's files
--   name   the id of the message, or the name of the file
--   new    'new', or ''
--   about  a file: its value, see attach.c
--   reply  1; 0 and nothing done: the set is gone
--
-- 'new' makes the key for an hour, a limit that publish removes.  Else a key that was about to
-- expire stays.
--
-- A crash before: nothing has happened.  After: a new key expires; any other set stays
-- until the message ends, or mq-clean finds no such message.

-- include rights

local call, time = redis.call, redis.call('TIME')
new = new == 'new'

if not new and call('EXISTS', key) == 0 then
  return 0
end
need(key, 'HSET', new and 'EXPIRE' or 'PERSIST')
-- Before Redis 7, EXPIRE itself is refused, and there is no key yet.
if new and not may then
  call('EXPIRE', key, 3600)
end
local noted = redis.pcall('HSET', key, name, about or
  string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
-- If memory is full, the old time is good enough.
if type(noted) == 'table' and
    (new or call('HEXISTS', key, name) == 0) then
  return noted
end
if new then
  call('EXPIRE', key, 3600)
else
  call('PERSIST', key)
end
return 1
