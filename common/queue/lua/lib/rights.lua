-- The rights of a user are looked at anew at each command of a script, and what
-- was done before one that is refused stays done.  So whether those that follow
-- will pass is asked before the first change.  Servers before Redis 7 cannot
-- tell.

local may = redis.acl_check_cmd

local function need(key, ...)
  for i = 1, may and select('#', ...) or 0 do
    local command = select(i, ...)
    if not may(command, key) then
      error(redis.error_reply('NOPERM this user has no permissions to run the \''
        .. command:lower() .. '\' command'))
    end
  end
end
