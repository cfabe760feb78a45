-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- The messages of a queue that a connection holds.
--
-- KEYS unacked info
-- ARGV queue heads
--
--   heads  '1': only the first 1024 bytes of each message
--   reply  how many messages the connection has ever claimed; then the unacked
--         ones, the newest first
--
-- Changes nothing.

local held = redis.call('LRANGE', unacked, 0, -1)
for i = 1, heads == '1' and #held or 0 do
  held[i] = held[i]:sub(1, 1024)
end
local claimed = redis.call('HGET', info, 'claimed:' .. queue)
table.insert(held, 1, tonumber(claimed or nil) or 0)
return held
