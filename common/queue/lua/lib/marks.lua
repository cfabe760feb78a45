-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- The results of the last 16 batches of a publisher: a hash with a field for each, of
-- the number of messages before the batch, a blank, and the reply.  A publisher that
-- has lost a reply finds it there, and a batch that comes twice changes nothing.
--
--   marks   the key; nil: replies are not kept
--   slot    of the batch, 0 to 15, which are kept for ten minutes; or 16 to 31, for 30 days:
--           a publisher whose batches are on disk may ask that late
--   before  number of messages in all batches before this one
--   behind  `before` of the batch that has to be done first; -1: none

local function replied(marks, slot, before)
  local had, reply = (marks and call('HGET', marks, slot) or '')
    :match('^(%d+) (.*)$')
  return had and tonumber(had) >= tonumber(before) and reply or nil
end

-- Whether a batch comes too soon: the previous one was refused, or will be sent again.
local function overtakes(marks, slot, behind)
  return tonumber(behind) >= 0
    and not replied(marks, slot - slot % 16 + (slot + 15) % 16, behind)
end

local function mark(marks, slot, before, reply)
  if marks then
    call('HSET', marks, slot, before .. ' ' .. reply)
    call('PEXPIRE', marks, tonumber(slot) < 16 and 600000 or 2592000000)
  end
end
