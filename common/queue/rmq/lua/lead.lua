-- Make a large message ready by way of a stub: its header, and an id in the place
-- of the payload.  In one transaction, this script puts the stub into ready and
-- removes the message from where it was, LINSERT puts the message beside the
-- stub, and LREM removes the stub.  So no script has the payload.
--
--   KEYS  the queue's (see lib/place.lua), where the message is the next one:
--         delayed or a rejected list; rmq::queues
--   ARGV  'delayed' or 'rejected', the stub as it was there, the stub as it
--         is in ready
--   reply 1; or 0 and nothing done, as the message asks for more than a place
--
-- The caller watches the second key, so the message is still the next one.
-- A crash before the transaction: the message is where it was.  After: the message
-- is ready only.

-- include place
-- include moves

local q, from, stub, arrived = queue_keys(1), KEYS[7], ARGV[2], ARGV[3]
local fresh = ARGV[1] == 'rejected' and anew(stub, 'Mq-Attempt') or stub
if options(stub) or fresh ~= arrived then
  return 0
end
need(q.ready, 'LPUSH', 'LINSERT', 'LREM')
call('LLEN', q.ready)
-- Changes nothing and needs no memory; see claim.lua.
if ARGV[1] == 'delayed' then
  need(from, 'ZREMRANGEBYRANK')
  call('ZREM', from, '')
  call('LPUSH', q.ready, arrived)
  call('ZREMRANGEBYRANK', from, 0, 0)
else
  call('LTRIM', from, 0, -1)
  call('LPUSH', q.ready, arrived)
  call('LTRIM', from, 0, -2)
  make_known(q, KEYS[8])
end
note_large(q)
return 1
