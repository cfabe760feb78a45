-- The holders of a queue: a hash with a field for each connection of these tools that
-- consumes the queue, "END UNSETTLED NAME".  Until END, in unix milliseconds, UNSETTLED of its
-- messages may run; "0 0 NAME" says nothing about messages.
--
-- Lists a connection, and needs `call`.  `all` is the sorted set that has every connection
-- listed anywhere, this one included.  If a cleaner that does not know holders has removed
-- many, their fields go: a field that `all` does not know is of a dead connection.
local function list_holder(holders, connection, all)
  call('HSET', holders, connection, '0 0 ' .. connection)
  if call('HLEN', holders) > 2 * call('ZCARD', all) then
    for _, name in ipairs(redis.pcall('HKEYS', holders)) do
      if not call('ZSCORE', all, name) then
        call('HDEL', holders, name)
      end
    end
  end
end
