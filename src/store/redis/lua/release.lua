-- ARGV: for each, from 2: name, lease, nonce, term, reason, reserved for ('': none), hold in ms
-- Returns for each: '1', or '0': that claim doesn't stand (S6).
local now, us = clock()
local r = {}
for i = 2, #ARGV, 7 do
	local name, lease, term = ARGV[i], ARGV[i + 1], ARGV[i + 3]
	local e = redis.call('HMGET', election_key(name), 'term', 'lease', 'nonce')
	local stands = e[1] == term and e[2] == lease and e[3] == ARGV[i + 2] and holder(name, e)
	if stands then
		unclaim(name, lease, term, us, ARGV[i + 4])
		if ARGV[i + 5] ~= '' then
			redis.call('HSET', election_key(name), 'reserved_for', ARGV[i + 5], 'reserved_until',
				str(now + tonumber(ARGV[i + 6])), 'reserved_ms', ARGV[i + 6])
		end
	end
	r[#r + 1] = stands and '1' or '0'
end
return r
