-- ARGV: 2 lease, 3 owner, 4 address, 5 ttl, 6 the namespace's longest lease, 7 how much history;
-- then for each election: name, nonce, term ('0': no claim), priority, score, healthy, metadata,
-- shown
-- Returns {'ok'}, or {'late'}: others may have won.
--
-- The server has changed, and may have lost what this lease holds. While the guard is on, no
-- candidate can have won since. So a candidate that held an election then holds it still, unless
-- its term is below the stored one. If the stored term is the same, but without the claim, the claim
-- was given back.
local now, us = clock()
local max = redis.call('HGET', KEYS[1], 'max_lease')
if max and max ~= ARGV[6] then return {'late'} end
local wait, run = guard(now, tonumber(ARGV[6]), '0')
if wait <= 0 then return {'late'} end
local key = lease_key(ARGV[2])

local function may(e, i)
	local stored, claimed = tonumber(e[1] or '0'), tonumber(ARGV[i + 2])
	if stored == claimed then return e[2] == ARGV[2] and e[3] == ARGV[i + 1] end
	return stored < claimed
end

local function claim(i)
	local name, term = ARGV[i], ARGV[i + 2]
	local e = redis.call('HMGET', election_key(name), 'term', 'lease', 'nonce')
	local list = P .. 'history:' .. name
	if not may(e, i) then return end
	local stands = e[2] == ARGV[2] and holder(name, e)
	redis.call('HSET', key, 'claim:' .. name, ARGV[i + 1] .. ' ' .. term)
	if stands then return end
	if e[1] ~= term then -- an older leadership, which is over since this one began
		if e[2] then redis.call('HDEL', lease_key(e[2]), 'claim:' .. name) end
		history_end(name, us, 'lost')
		redis.call('HDEL', election_key(name), 'order_id', 'order_kind', 'order_quiet',
			'order_target', 'order_note', 'reserved_for', 'reserved_until', 'reserved_ms')
		redis.call('HSET', election_key(name), 'term', term, 'lease', ARGV[2], 'nonce',
			ARGV[i + 1], 'since', str(now), 'leader', ARGV[3], 'priority', ARGV[i + 3], 'score',
			ARGV[i + 4], 'metadata', ARGV[i + 6])
		enlist(name)
		if ARGV[7] ~= '0' then
			redis.call('LPUSH', list, term .. '\t' .. us .. '\t\t\t' .. string.sub(run, 1, 16) ..
				'\t' .. ARGV[3])
			redis.call('LTRIM', list, 0, tonumber(ARGV[7]) - 1)
		end
	end
	hint(name, 'held', term)
end

redis.call('HSET', KEYS[1], 'max_lease', ARGV[6], 'durable', '0')
redis.call('HSET', key, 'owner', ARGV[3], 'address', ARGV[4], 'ttl', ARGV[5])
redis.call('PEXPIRE', key, ARGV[5])
for i = 8, #ARGV, 8 do
	if ARGV[i + 2] ~= '0' then claim(i) end
	if ARGV[i + 7] == '1' then
		redis.call('HSET', P .. 'candidates:' .. ARGV[i], ARGV[2], str(now) .. '\t' ..
			ARGV[i + 3] .. '\t' .. ARGV[i + 4] .. '\t' .. ARGV[i + 5] .. '\t' .. ARGV[i + 6])
	end
end
return {'ok'}
