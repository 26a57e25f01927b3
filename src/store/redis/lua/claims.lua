-- ARGV: 2 lease, 3 cursor. Returns {cursor, name, nonce, term, ...}: some claims per call.
--
-- It writes the owner again, unchanged, so that a WAIT behind it waits for all earlier writes.
local key = lease_key(ARGV[2])
local owner = redis.call('HGET', key, 'owner')
if not owner then return {'0'} end
redis.call('HSET', key, 'owner', owner)
local scan = redis.call('HSCAN', key, ARGV[3], 'MATCH', 'claim:*', 'COUNT', '200')
local r = {scan[1]}
for i = 1, #scan[2], 2 do
	local name = string.sub(scan[2][i], 7)
	local e = redis.call('HMGET', election_key(name), 'term', 'lease', 'nonce')
	if e[2] == ARGV[2] and holder(name, e) then
		r[#r + 1] = name
		r[#r + 1] = e[3]
		r[#r + 1] = e[1]
	else
		redis.call('HDEL', key, scan[2][i])
	end
end
return r
