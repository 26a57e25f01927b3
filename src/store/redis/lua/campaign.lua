-- ARGV: 2 lease, 3 owner, 4 the namespace's longest lease, 5 durable, 6 how much history; then for
-- each election: name, nonce, floor, priority, score, metadata
-- Returns for each: {'won', term}, {'no', record...}, {'end'} (there is no higher term), or
-- {'jump'} (the floor is impossibly high).
local TERM_MAX = 9007199254740991
local JUMP_MAX = 281474976710656
local now, us = clock()
local key = lease_key(ARGV[2])
local alive = redis.call('HEXISTS', key, 'owner') == 1
local wait, run = guard(now, tonumber(ARGV[4]), ARGV[5])

-- S3, S4: the term is above all that the store knows, and above all that the candidate knows. It is
-- not below the server's clock in milliseconds, and so above all that the server can have granted
-- before it lost its data.
local function mint(stored, floor)
	if stored >= TERM_MAX or floor >= TERM_MAX then return nil, 'end' end
	if stored > 0 and floor - stored > JUMP_MAX then return nil, 'jump' end
	return str(math.max(stored + 1, floor + 1, now))
end

local function win(i, term, old)
	local name = ARGV[i]
	local list = P .. 'history:' .. name
	if old then -- it was not released: its lease has expired
		unclaim(name, old, term, us, 'expired')
	else
		redis.call('HDEL', election_key(name), 'reserved_for', 'reserved_until',
			'reserved_ms')
	end
	redis.call('HSET', election_key(name), 'term', term, 'lease', ARGV[2], 'nonce', ARGV[i + 1],
		'since', str(now), 'leader', ARGV[3], 'priority', ARGV[i + 3], 'score', ARGV[i + 4],
		'metadata', ARGV[i + 5])
	redis.call('HSET', key, 'claim:' .. name, ARGV[i + 1] .. ' ' .. term)
	enlist(name)
	if ARGV[6] ~= '0' then
		redis.call('LPUSH', list, term .. '\t' .. us .. '\t\t\t' .. string.sub(run, 1, 16) ..
			'\t' .. ARGV[3])
		redis.call('LTRIM', list, 0, tonumber(ARGV[6]) - 1)
	end
	hint(name, 'held', term .. ' ' .. ARGV[2])
	return {'won', term}
end

local function campaign(i)
	local r, old = record(ARGV[i], ARGV[3], now)
	local free = r[1] == '0' and r[3] == '0' and r[5] == '0'
	if free and alive and wait <= 0 then
		local term, why = mint(tonumber(r[2]), tonumber(ARGV[i + 2]))
		return term and win(i, term, old) or {why}
	end
	if free and alive then
		waits(r, wait)
	elseif free then
		r[4] = '0' -- worth another try soon, on another lease
	end
	table.insert(r, 1, 'no')
	return r
end

local r = {}
for i = 7, #ARGV, 6 do r[#r + 1] = campaign(i) end
return r
