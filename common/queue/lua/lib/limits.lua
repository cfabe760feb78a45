-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Limits on the number of messages in a queue ('': none): claimable ones, for a message
-- without and with a priority above 0, and delayed ones likewise.  Without `ready`, the
-- setting max-length counts.
local function limits_of(ready, high, delayed, delayed_high, settings)
  local set = ready == '' and redis.pcall('HGET', settings, 'max-length')
  if type(set) == 'string' then
    ready, high = set:match('^(%d+):?(%d*)$')
    ready = ready or ''
    high = (high or '') == '' and ready or high
  end
  return { ready, high, delayed, delayed_high }
end
