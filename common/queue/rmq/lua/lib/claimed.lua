-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Counts n messages that a connection has claimed, so that an owner that gets no reply knows how
-- many of its messages are new.  On a cluster the first claim makes the info, which a cleaner that
-- does not know it leaves there for a day.
local function count_claimed(n)
  if call('HINCRBY', info, 'claimed:' .. queue, n) == n
      and call('PTTL', info) == -1 then
    call('EXPIRE', info, 86400)
  end
end
