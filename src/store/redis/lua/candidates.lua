-- ARGV: 2 name. Returns the record of the election, and for each candidate: owner, address, is
-- leader, updated, priority, score, healthy, metadata
local name = ARGV[2]
local e = redis.call('HMGET', election_key(name), 'term', 'lease', 'nonce')
local leads = holder(name, e) and e[2]
local all = redis.call('HGETALL', P .. 'candidates:' .. name)
local now = clock()
local r = {observed(name, '', now, waiting(now))}
for i = 1, #all, 2 do
	local l = redis.call('HMGET', lease_key(all[i]), 'owner', 'address')
	local updated, priority, score, healthy, metadata =
		string.match(all[i + 1], '^(%d+)\t(%-?%d+)\t(%d+)\t([01])\t(.*)$')
	if l[1] and updated then
		r[#r + 1] = {l[1], l[2] or '', leads == all[i] and '1' or '0', updated, priority, score,
			healthy, metadata}
	end
end
return r
