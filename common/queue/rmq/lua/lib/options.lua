-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- The options in the header of a message.

-- Go and the tools replace text that is not Unicode, and scripts do the same: a key or group
-- keeps its name when the header is written anew.

-- include json
-- include utf8
-- include asking

-- The first value of each Mq- header, by its name without "Mq-".
local function ours(head)
  local found = {}
  -- Without a backslash, every quote begins or ends a string.
  if not head:find('\\', 1, true) then
    for name, v in head:gmatch('"Mq%-([%w-]+)"%s*:%s*%[%s*"([^"]*)"') do
      found[name] = v
    end
    return found
  end
  local good, headers = decode(head)
  for name, v in pairs(good and type(headers) == 'table' and headers or {}) do
    v = type(v) == 'table' and v[1]
    if type(name) == 'string' and name:sub(1, 3) == 'Mq-'
        and type(v) == 'string' then
      found[name:sub(4)] = v
    end
  end
  return found
end

local function number(text, min, max)
  local v = text and text:find('^%-?%d+$') and tonumber(text)
  return v and v >= min and v <= max and v or nil
end

-- The options of a message, or nil if there are none.
local function options(element)
  local head = asking(element)
  if not head then
    return nil
  end
  local has = ours(head)
  local id, group = has.Id, as_text(has.Group)
  id = id and #id == 32 and id or nil
  return { id = id,
    priority = number(has.Priority, -100, 100) or 0,
    tick = number(has['From-Tick'], 0, 2 ^ 48),
    last_tick = number(has['Until-Tick'], 0, 2 ^ 48),
    expires = number(has.Expires, 0, 2 ^ 48),
    attempts = number(has.Attempt, 0, 9999) or has.Attempt and 9999 or 0,
    due = number(has.Due, 0, 2 ^ 48) or 0,
    line = id and group and redis.sha1hex(group):sub(1, 13),
    key = id and as_text(has.Key),
    batch = id and as_text(has.Batch),
    after = as_text(has.After),
    -- How long the key is kept: 'queued', 'done', or milliseconds.
    unique = (has.Unique == 'queued' or number(has.Unique, 1, 2 ^ 48))
      and has.Unique or 'done',
    -- A copy of a message has another id, and gets no reply.
    reply_to = id and has['Reply-To'] == id and id:find('^[%w:]+$') and id
      or nil }
end
