-- KEYS: 1 the lease. ARGV: 2 ttl, 3 cursor, then the leases that this process waits for
-- {'gone'}, or {'ok', claims, cursor, ms left of each of those}: standbys learn with their own
-- renewal how long the leaders' leases are good, and need not ask. -1: nobody knows.
--
-- Some claims per call are looked at from both sides: what the election doesn't know of is none.
--
-- The lease's key tells a cluster where to go. While its slot is being moved, the lease may be here
-- and others may not, and reading those is an error: nothing is known of them then.
local key = KEYS[1]
local id = string.sub(key, #lease_key('') + 1)
if redis.call('EXISTS', key) == 0 then return {'gone'} end
redis.call('PEXPIRE', key, ARGV[2])
local scan = redis.call('HSCAN', key, ARGV[3], 'MATCH', 'claim:*', 'COUNT', '64')
for i = 1, #scan[2], 2 do
	local name = string.sub(scan[2][i], 7)
	local e = redis.pcall('HMGET', election_key(name), 'term', 'lease', 'nonce')
	if not e.err and (e[2] ~= id or not holder(name, e)) then
		redis.call('HDEL', key, scan[2][i])
	end
end
local r = {'ok', str(redis.call('HLEN', key) - 3), scan[1]}
for i = 4, #ARGV do
	local known, left = pcall(function()
		return lease_left(ARGV[i], redis.call('HGET', lease_key(ARGV[i]), 'ttl'))
	end)
	r[#r + 1] = known and str(left) or '-1'
end
return r
