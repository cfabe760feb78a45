-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Headers of a message as JSON.

-- Replaces halves of surrogate pairs, which cjson would refuse.
local function mended(head)
  return (head:gsub('\\\\', '\1')
    :gsub('\\u([dD][89abAB]%x%x)\\u([dD][c-fC-F]%x%x)', '\2%1\2%2')
    :gsub('\\u[dD][89a-fA-F]%x%x', '\\ufffd')
    :gsub('\2', '\\u'):gsub('\1', '\\\\'))
end

-- Whether a header is JSON, and its table.
local function decode(head)
  local good, headers = pcall(cjson.decode, head)
  if not good then
    good, headers = pcall(cjson.decode, mended(head))
  end
  return good, headers
end
