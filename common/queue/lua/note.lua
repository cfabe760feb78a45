-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Note how a queue is, in place of earlier notes of this minute and this hour.
--
-- KEYS minutes hours
-- ARGV note (field lapse_s)...
--
--   field    of each key
--   lapse_s  in how many seconds the key lapses
--
-- A crash before: nothing has happened.  After: everything is noted.

local function put(key, field, lapse_s)
  -- EXPIRE first: a user without that right writes no key that would stay.
  local there = redis.call('EXPIRE', key, lapse_s)
  redis.call('HSET', key, field, note)
  if there == 0 then
    redis.call('EXPIRE', key, lapse_s)
  end
end

put(minutes, unpack(ARGV, first_field))
put(hours, unpack(ARGV, first_field + each_field))
