-- ARGV: 2 lease; then for each election: name, priority, score, healthy, metadata. Returns for each
-- '1', or '0': there is no such lease.
local now = clock()
local alive = redis.call('HEXISTS', lease_key(ARGV[2]), 'owner') == 1

-- A candidate that joins removes those whose lease is gone.
local function sweep(key)
	for _, id in ipairs(redis.call('HKEYS', key)) do
		if redis.call('EXISTS', lease_key(id)) == 0 then redis.call('HDEL', key, id) end
	end
end

-- A leader's profile stands in the record, too.
local function show_leader(name, priority, score, metadata)
	local e = redis.call('HMGET', election_key(name), 'term', 'lease', 'nonce', 'priority', 'score',
		'metadata')
	if e[2] ~= ARGV[2] or not holder(name, e) or
			(e[4] == priority and e[5] == score and e[6] == metadata) then
		return
	end
	redis.call('HSET', election_key(name), 'priority', priority, 'score', score, 'metadata', metadata)
	hint(name, 'held', e[1])
end

local r = {}
for i = 3, #ARGV, 5 do
	local key = P .. 'candidates:' .. ARGV[i]
	if alive then
		local fresh = redis.call('HSET', key, ARGV[2], str(now) .. '\t' .. ARGV[i + 1] .. '\t' ..
			ARGV[i + 2] .. '\t' .. ARGV[i + 3] .. '\t' .. ARGV[i + 4])
		if fresh == 1 then sweep(key) end
		show_leader(ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 4])
	end
	r[#r + 1] = alive and '1' or '0'
end
return r
