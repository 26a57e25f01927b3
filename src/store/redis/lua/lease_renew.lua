-- ARGV: 2 lease, 3 ttl, 4 cursor, then the leases that this process waits for
-- {'gone'}, or {'ok', claims, cursor, ms left of each of those}: standbys learn with their own
-- renewal how long the leaders' leases are good, and need not ask.
--
-- Some claims per call are looked at from both sides: what the election doesn't know of is none.
local key = lease_key(ARGV[2])
if redis.call('EXISTS', key) == 0 then return {'gone'} end
redis.call('PEXPIRE', key, ARGV[3])
local scan = redis.call('HSCAN', key, ARGV[4], 'MATCH', 'claim:*', 'COUNT', '64')
for i = 1, #scan[2], 2 do
	local name = string.sub(scan[2][i], 7)
	local e = redis.call('HMGET', election_key(name), 'term', 'lease', 'nonce')
	if e[2] ~= ARGV[2] or not holder(name, e) then redis.call('HDEL', key, scan[2][i]) end
end
local r = {'ok', str(redis.call('HLEN', key) - 2), scan[1]}
for i = 5, #ARGV do r[#r + 1] = str(redis.call('PTTL', lease_key(ARGV[i]))) end
return r
