-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Drop rejected messages that the queue's setting keep-rejected does not keep: one step of a walk
-- that begins with the oldest.
--
-- KEYS rejected settings counters
-- ARGV setting ms most passed dry
--
--   setting  the value of keep-rejected for which the walk began; with another one, it is over
--   ms       how long a message stays after its last failure, in milliseconds, or ''
--   most     how many messages stay, or ''
--   passed   messages at the right end that the walk has passed
--   dry      how many messages the walk would have dropped, if it changes nothing, else ''
--   reply    {messages dropped; messages that the walk has passed now; 1 if more may follow}
--
-- A message without a time, such as one that a Go program has rejected, or with a time to come,
-- only goes when there are too many, and a walk passes at most PASSES of these.  As messages are
-- in the order of their rejection, the first that is young enough ends the walk.
--
-- A step looks at some 1000 messages, 166 with a history, or about 1 MiB.
-- A crash before: no message has left.  After: those that left are counted; their attachments
-- stay for a cleaner.

-- include basics
-- include cursor
-- include json

if call('HGET', settings, 'keep-rejected') ~= setting then
  return { 0, 0, 0 }
end
-- LSET and LREM pass these in each step, and each round does.
local PASSES = 10000
local n, would = call('LLEN', rejected), tonumber(dry)
local excess = most ~= '' and n - (would or 0) - most or 0
local oldest = ms ~= '' and now - ms
passed = tonumber(passed)
local behind = would and passed or excess > 0 and 0 or passed
local work = 1000

-- When a message has failed last, in unix milliseconds, or nil.
local function failed_at(element)
  local stop = element:sub(1, 5) == '\255\0\190\190J' and element:find('\n', 6, true)
  local head = stop and element:sub(6, stop - 1)
  if not head or not head:find('"Mq-History"', 1, true) then
    return nil
  end
  work = work - 5
  local good, headers = decode(head)
  local history = good and type(headers) == 'table' and headers['Mq-History']
  local last = type(history) == 'table' and history[#history]
  if type(last) ~= 'string' then
    return nil
  end
  good, last = decode(last)
  local at = good and type(last) == 'table' and last.at_ms
  return type(at) == 'number' and at or nil
end

local places, young, stay = {}, false, behind - (would or 0)
local max = oldest and n - behind or math.min(excess, n - behind)
local looked = go_through(rejected, false, behind, max, function(element, _, i)
  work = work - 1 - #element / 1024
  local drop = excess > #places
  if not drop then
    local at = failed_at(element)
    young = at and at >= oldest and at <= now
    drop = at and at < oldest
  end
  if drop then
    places[#places + 1] = -behind - i
  elseif not young then
    stay = stay + 1
  end
  return young or work <= 0 or stay >= PASSES
end)
local dropped = #places

if dropped > 0 and not would then
  -- LTRIM changes nothing and needs no memory; see claim.lua.
  call('LTRIM', rejected, 0, -1)
  if places[dropped] == -dropped then
    call('LTRIM', rejected, 0, -dropped - 1)
  else
    -- These commands may be refused, and change nothing.
    local tombstone = redis.sha1hex(now_us .. rejected)
    call('LREM', rejected .. tombstone, 1, tombstone)
    mark_places(rejected, places, tombstone)
    remove_marked(call, rejected, dropped, tombstone, behind)
  end
  -- Errors are ignored: the messages matter more than the count.
  redis.pcall('HINCRBY', counters, 'dropped', dropped)
end
return { dropped, would and stay + would + dropped or math.max(stay, passed - dropped),
  not young and stay < PASSES and looked > 0 and (looked < max or work <= 0) and 1 or 0 }
