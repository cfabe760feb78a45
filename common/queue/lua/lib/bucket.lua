-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- A rate that all consumers of a queue share: a bucket of tokens, full if its key is missing.

-- Returns the milliseconds until the bucket has another token; -1: now.
local function bucket_take(b, n)
  b.tokens = b.tokens - n
  call('HSET', b.key, 'tokens', string.format('%.6f', b.tokens), 'us', now_us)
  call('PEXPIRE', b.key,
    math.ceil((b.burst - b.tokens) / b.per_s * 1000) + 1000)
  return b.tokens < 1 and math.ceil((1 - b.tokens) / b.per_s * 1000) or -1
end

-- Returns nil without a rate.  The bucket is written here, too, so that a refusal comes before
-- the first message moves.
local function bucket_of(key, per_s, burst)
  if per_s == '' then
    return nil
  end
  local b = { key = key, per_s = tonumber(per_s), burst = tonumber(burst) }
  local had = call('HMGET', key, 'tokens', 'us')
  local tokens = (tonumber(had[1]) or b.burst)
    + math.max(0, now_us - (tonumber(had[2]) or now_us)) / 1000000 * b.per_s
  b.tokens = math.min(b.burst, tokens)
  bucket_take(b, 0)
  return b
end
