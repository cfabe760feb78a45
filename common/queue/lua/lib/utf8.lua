-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Replaces bytes that are not UTF-8.
local function as_text(s)
  if not s or not s:find('[\128-\255]') then
    return s
  end
  local characters = { '^[%z\1-\127]', '^[\194-\223][\128-\191]',
    '^\224[\160-\191][\128-\191]', '^\237[\128-\159][\128-\191]',
    '^[\225-\236\238\239][\128-\191][\128-\191]',
    '^\240[\144-\191][\128-\191][\128-\191]',
    '^[\241-\243][\128-\191][\128-\191][\128-\191]',
    '^\244[\128-\143][\128-\191][\128-\191]' }
  local out, at = {}, 1
  while at <= #s do
    local c
    for i = 1, #characters do
      c = c or s:match(characters[i], at)
    end
    out[#out + 1] = c or '\239\191\189'
    at = at + (c and #c or 1)
  end
  return table.concat(out)
end
