-- Write what the reducer decided about one run, or nothing at all.
--
-- KEYS  1 run hash, 2 open runs (sorted set), 3 outbox (stream), 4 closed runs (sorted set)
-- ARGV  1 expected revision, 2 run id, 3 next due time or '', 4 seconds to live or '',
--       5 channel to announce a closing on or '', 6 number of hash fields, then
--       field and value of each, then run id, message id, type, reply_to and body
--       of each outgoing message
-- Returns {1, new revision, entry id...} or {0, revision that stands}.
local revision = tonumber(redis.call('HGET', KEYS[1], 'rev') or '0')
if revision ~= tonumber(ARGV[1]) then
  return {0, revision}
end
local fields = {'rev', revision + 1}
local at = 7
for _ = 1, tonumber(ARGV[6]) do
  fields[#fields + 1] = ARGV[at]
  fields[#fields + 1] = ARGV[at + 1]
  at = at + 2
end
redis.call('HSET', KEYS[1], unpack(fields))
if ARGV[3] == '' then
  redis.call('ZREM', KEYS[2], ARGV[2])
else
  redis.call('ZADD', KEYS[2], ARGV[3], ARGV[2])
end
if ARGV[4] ~= '' then
  redis.call('EXPIRE', KEYS[1], ARGV[4])
end
local reply = {1, revision + 1}
while at <= #ARGV do
  reply[#reply + 1] = redis.call('XADD', KEYS[3], '*', 'run_id', ARGV[at],
    'message_id', ARGV[at + 1], 'type', ARGV[at + 2], 'reply_to', ARGV[at + 3], 'body', ARGV[at + 4])
  at = at + 5
end
if ARGV[5] ~= '' then
  local now = tonumber(redis.call('TIME')[1])
  redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', now - 3600)
  redis.call('ZADD', KEYS[4], now, ARGV[2])
  redis.call('PUBLISH', ARGV[5], ARGV[2])
end
return reply
