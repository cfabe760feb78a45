-- Under which ids messages that were just handed out are found.
--
--   KEYS  what the connection holds
--   ARGV  their ids
--   reply the same, without those that it does not hold any more.  Instead of
--         an id that has not the form of one comes its hash
--
-- Changes nothing.

local reply = {}
for i = 1, #ARGV do
  local id = ARGV[i]
  if redis.call('HEXISTS', KEYS[1], id) == 1 then
    reply[#reply + 1] = #id == 32 and id:find('^[%w:]+$') and id
      or redis.sha1hex(id):sub(1, 32)
  end
end
return reply
