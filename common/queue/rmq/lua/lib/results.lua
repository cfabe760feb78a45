-- Results of messages, for programs that wait for them.  Needs place.

-- Keeps the result of a message, as of result.h, under its id, and drops that of an
-- earlier run.
local function keep_result(q, id, text, ms)
  local key = q.results .. id
  call('DEL', key)
  call('RPUSH', key, text)
  call('PEXPIRE', key, ms)
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
