-- ARGV: 2 name, 3 term, 4 id, 5 kind, 6 quiet in ms, 7 target, 8 note. Returns {'1'}, or {'0'}:
-- that term leads no more.
local name = ARGV[2]
local e = redis.call('HMGET', election_key(name), 'term', 'lease', 'nonce')
if e[1] ~= ARGV[3] or not holder(name, e) then return {'0'} end
redis.call('HSET', election_key(name), 'order_id', ARGV[4], 'order_kind', ARGV[5], 'order_quiet',
	ARGV[6], 'order_target', ARGV[7], 'order_note', ARGV[8])
hint(name, 'order', e[1])
return {'1'}
