-- How many messages may be there for another one to be accepted: claimable ones, the
-- same for one of a priority above 0, delayed ones, the same ('': any number).  If
-- nothing is said of the claimable ones, the max-length of the settings counts.
local function limits_of(ready, high, delayed, delayed_high, settings)
  local set = ready == '' and redis.pcall('HGET', settings, 'max-length')
  if type(set) == 'string' then
    ready, high = set:match('^(%d+):?(%d*)$')
    ready = ready or ''
    high = (high or '') == '' and ready or high
  end
  return { ready, high, delayed, delayed_high }
end
