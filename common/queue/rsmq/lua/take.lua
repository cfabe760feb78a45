-- Take messages that a walk has found away from where they are.
--
--   KEYS  those of their queue (see lib/layout.lua), and of the target (the same for
--         what is dropped), the set of names of the target's namespace
--   ARGV  how (see lib/moves.lua), name of the target, then of each message its id and
--         score
--   reply how many were taken: a message that has another score by now was received, or
--         put elsewhere; and one of whose id there is one at the target stays where it
--         is
--
-- A crash before: all are where they were.  After: each is in its new place only.

-- include layout
-- include moves

local q = queue_keys(1)
local to, names = queue_keys(5)
local ids, n = {}, 0

for i = 3, #ARGV, 2 do
  if call('ZSCORE', q.z, ARGV[i]) == ARGV[i + 1] then
    ids[#ids + 1] = ARGV[i]
  end
end
be_sure(q, to, ARGV[1] ~= 'drop')
if ARGV[1] ~= 'drop' and #ids > 0 then
  create_as(q, to, names, ARGV[2])
end
for part in parts(ids, 32) do
  n = n + take(q, to, part, ARGV[1])
end
return n
