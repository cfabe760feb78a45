-- Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
-- Headers of a message that a script writes anew.

-- include json

local HISTORY = 15

-- The first value of a header.
local function value(headers, of)
  return type(headers[of]) == 'table' and headers[of][1]
end

local function is_list(values)
  local n = 0
  for _, v in pairs(values) do
    n = n + ((type(v) == 'string' or v == cjson.null) and 1 or 0.1)
  end
  return n == #values
end

-- The headers in a JSON object; nil: other programs cannot read them, either.
local function parse_headers(text)
  local good, headers = decode(text)
  if good and headers == cjson.null then
    headers = {}
  end
  if not good or type(headers) ~= 'table' then
    return nil
  end
  for of, values in pairs(headers) do
    if type(of) ~= 'string'
        or values ~= cjson.null and (type(values) ~= 'table' or not is_list(values)) then
      return nil
    end
  end
  return headers
end

local function json(v)
  return (cjson.encode(v):gsub('\\/', '/'))
end

-- The members of the JSON object.
local function write_headers(headers)
  local names, out = {}, {}
  for of in pairs(headers) do
    names[#names + 1] = of
  end
  table.sort(names)
  for i, of in ipairs(names) do
    local values = headers[of]
    out[i] = json(of) .. ':' .. (type(values) == 'table' and #values == 0
      and '[]' or json(values))
  end
  return table.concat(out, ',')
end

-- The element with a header in place of an earlier one.  A header line that other programs cannot
-- read stays as it is.
local function with_header(element, of, values)
  local stop = element:find('\n', 6, true)
  local headers = parse_headers(element:sub(6, stop))
  if not headers then
    return element
  end
  headers[of] = values
  return element:sub(1, 5) .. '{' .. write_headers(headers) .. '}' .. element:sub(stop)
end

-- Records that the consumer died during this attempt, the last one or not; returns the reason.
-- host: a further member of the record, with its comma, or ''.
local function note_crash(headers, at_ms, attempt, last, host)
  local why = (last and 'attempts exhausted: ' or '') .. 'its consumer died while it ran'
  local history = type(headers['Mq-History']) == 'table' and headers['Mq-History'] or {}
  history[#history + 1] = string.format('{"at_ms":%.0f,"attempt":%.0f,%s"text":"%s"}', at_ms,
    attempt, host, why)
  while #history > HISTORY do
    table.remove(history, 1)
  end
  headers['Mq-Error'], headers['Mq-History'] = { why }, history
  return why
end
