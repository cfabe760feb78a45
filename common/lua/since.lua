-- Look at the oldest message of each ready list, without its payload.
--
--   KEYS  ready...
--   reply for each: its header, from the signature to the newline, or nil when
--         there is no message or no header of up to 64 KiB
--
-- Changes nothing.

local reply = {}
for i, key in ipairs(KEYS) do
  local element = redis.call('LINDEX', key, -1)
  local size
  if element and element:sub(1, 5) == '\255\0\190\190J' then
    size = element:sub(1, 65536):find('\n', 6, true)
  end
  -- A nil would end the reply.
  reply[i] = size and element:sub(1, size) or false
end
return reply
