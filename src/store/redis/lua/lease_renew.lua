-- KEYS: 1 the lease. ARGV: 2 ttl, 3 cursor, then the leases that this process waits for
-- Returns {'gone'}, or {'ok', number of claims, cursor, ms left of each of those leases}. So a
-- standby learns with its own renewal how much time the leaders' leases have left, and need not
-- ask. -1: not known.
--
-- Each call checks some claims: a claim that the election doesn't have is dropped from the lease.
--
-- The lease's key tells a cluster where to go. While its slot is being moved, this lease may be
-- here and other leases may not. Reading those is an error, and then nothing is known of them.
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
