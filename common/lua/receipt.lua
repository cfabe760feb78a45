-- Look among the messages that a connection has been handed out by receipt.
--
--   KEYS  unacked, the connection's info
--   ARGV  id, or ''
--   reply the message with this id, or nil; without one, the ids of all, the
--         oldest first.  A connection of another kind has none
--
-- A message that came without an id is known by the hash of what it is.
-- Changes nothing.

local call = redis.call

local function id_of(element)
  if element:sub(1, 5) == '\255\0\190\190J' then
    local head = element:sub(6, element:find('\n', 6, true) or 0)
    local good, headers = pcall(cjson.decode, head)
    local id = good and type(headers) == 'table' and headers['Mq-Id']
    id = type(id) == 'table' and id[1]
    if type(id) == 'string' and #id == 32 and id:find('^[%w:]+$') then
      return id
    end
  end
  return redis.sha1hex(element):sub(1, 32)
end

if call('HEXISTS', KEYS[2], 'lease') == 0 then
  return ARGV[1] == '' and {} or false
end
local all, ids = call('LRANGE', KEYS[1], 0, -1), {}
for i = #all, 1, -1 do
  ids[#ids + 1] = id_of(all[i])
  if ids[#ids] == ARGV[1] then
    return all[i]
  end
end
return ARGV[1] == '' and ids or false
