-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- A user's rights are looked at anew at each command of a script, and what was done
-- before one that is refused stays done.  So whether the next ones will pass is asked
-- before the first change.  Servers before Redis 7 cannot tell.
--
-- Later ones want a whole command, and look at how many words it has.  Behind the key
-- is the key again, as that may be the place of one, too.  A server that does not
-- answer cannot tell, either.

local may = redis.acl_check_cmd
local words

local function need(key, ...)
  for i = 1, may and select('#', ...) or 0 do
    local command = select(i, ...)
    words = words or {
      GET = 2, HKEYS = 2, HLEN = 2, LLEN = 2, PERSIST = 2, SCARD = 2, ZCARD = 2,
      EXPIRE = 3, HEXISTS = 3, HGET = 3, LINDEX = 3, PEXPIRE = 3, PUBLISH = 3,
      SISMEMBER = 3, ZRANK = 3, ZSCORE = 3, LMOVE = 5,
    }
    local told, permitted =
      pcall(may, unpack({ command, key, key, key, key }, 1, words[command] or 4))
    if told and not permitted then
      error(redis.error_reply('NOPERM this user has no permissions to run the \''
        .. command:lower() .. '\' command'))
    end
  end
end
