-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- List a queue that has messages or attributes, or remove the name and keys of one that has
-- none.
--
-- KEYS names q:PLACES paused counters rate later
-- ARGV name dry
--
--   dry    '1': change nothing
--   reply  {1 if a queue was listed, or got attributes; number of names and keys removed}
--
-- A crash before: nothing has happened.  After: everything has.

-- include layout

dry = dry == '1'
local OWN = { 'vt', 'delay', 'maxsize', 'created', 'modified', 'totalsent',
  'totalrecv' }

-- Keys of other namespaces may have the names of these.
local TYPES = { 'set', 'zset', 'hash', 'hash', 'hash', 'string', 'hash', 'hash',
  'zset' }
for i, key in ipairs(KEYS) do
  local has = call('TYPE', key).ok
  if has ~= TYPES[i] and has ~= 'none' then
    return { 0, 0 }
  end
end

local fields, has = call('HLEN', q.h), call('HMGET', q.h, unpack(OWN))
for i = 1, #OWN do
  fields = fields - (has[i] and 1 or 0)
end
if has[1] or fields > 0 or call('ZCARD', q.z) > 0 then
  if has[1] and has[2] and has[3]
      and call('SISMEMBER', names, name) == 1 then
    return { 0, 0 }
  end
  if not dry then
    create(q.h, names, name)
  end
  return { 1, 0 }
end

local removed = call('SISMEMBER', names, name)
  + call('EXISTS', q.h, q.x, q.d, paused, counters, rate, later)
if not dry then
  call('SREM', names, name)
  call('DEL', q.h, q.x, q.d, paused, counters, rate, later)
end
return { 0, removed }
