-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Results of messages, for programs that wait for them.  Needs place.

-- Keeps the result of a message, as of result.h, under its id, and drops that of an
-- earlier run.
local function keep_result(q, id, text, ms)
  local key = q.results .. id
  call('DEL', key)
  call('RPUSH', key, text)
  call('PEXPIRE', key, ms)
end

-- Lists the end of a message among those of the queue, until its result expires, and drops some
-- that have expired.  A refusal changes nothing else: a list that another program has made of the
-- key, or a user without rights, costs only this entry.
local function list_end(q, id, text, ms)
  local key = q.results:gsub('result::$', 'ended')
  local at = text:match('"finished_ms":(%d+)')
  ms = tonumber(ms)
  if not at or type(redis.pcall('ZADD', key, now + ms, ('%013.0f'):format(at) .. id)) == 'table' then
    return
  end
  local over = redis.pcall('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, 100)
  if over[1] then
    redis.pcall('ZREM', key, unpack(over))
  end
  -- The key lives as long as its last entry; servers before Redis 7 have no PEXPIRE with GT.
  if (tonumber(redis.pcall('PTTL', key)) or ms) < ms then
    redis.pcall('PEXPIRE', key, ms)
  end
end

-- Keeps the result of a message that ends without a consumer, if a program waits for it.
-- state: 'rejected', 'expired' or 'purged' (text: a reason, or nil), or 'pushed' (text: the
-- next queue).
local function tell(q, w, state, text)
  if not (w and w.reply_to) then
    return
  end
  local result = { id = w.id, state = state, finished_ms = now,
    attempts = w.attempts }
  result[state == 'pushed' and 'to' or 'text'] =
    text and text:gsub('[%c\127-\255]', '?') or nil
  keep_result(q, w.reply_to, cjson.encode(result), 3600000)
end
