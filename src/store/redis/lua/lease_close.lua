-- ARGV: 2 lease, 3 cursor, then elections in which the lease's owner was shown as a candidate.
-- Gives back some claims per call. Returns {cursor}, which is 0 when the lease is gone.
local key = lease_key(ARGV[2])
local _, us = clock()
local scan = redis.call('HSCAN', key, ARGV[3], 'MATCH', 'claim:*', 'COUNT', '200')
for i = 1, #scan[2], 2 do
	local name = string.sub(scan[2][i], 7)
	local e = redis.call('HMGET', election_key(name), 'term', 'lease', 'nonce')
	if e[2] == ARGV[2] and holder(name, e) then unclaim(name, ARGV[2], e[1], us, 'closed') end
end
for i = 4, #ARGV do redis.call('HDEL', P .. 'candidates:' .. ARGV[i], ARGV[2]) end
if scan[1] == '0' then redis.call('DEL', key) end
return {scan[1]}
