-- The beginning of every script. KEYS[1] is the namespace, which also tells a cluster where to go;
-- all other keys have the same hash tag. ARGV[1] is what all keys begin with, "{baton}:".
--
-- A cluster may be moving the slot. Scripts then run on the node that the slot leaves. Reading a
-- key that isn't there (any more) is an error there, so nothing looks free that has only moved
-- already. Scripts must never run with ASKING on the new node, where keys that have not come yet
-- look free. The one exception is lease_keep.lua, which looks at one key only.
--
--   {baton}:namespace         max_lease durable: the same for all candidates; run replid until: see
--                             guard()
--   {baton}:lease:ID          owner address ttl claim:NAME="nonce term" ...; expires with the lease
--   {baton}:election:NAME     term, for ever; lease nonce since ... of the claim; order, reservation
--   {baton}:elections         a sorted set, all with score 0: the names of elections that have had
--                             a leader or are paused
--   {baton}:candidates:NAME   lease id -> updated priority score healthy metadata
--   {baton}:history:NAME      a list, newest first: term since until ended server leader note
--   {baton}:hint:NAME         the channel for watchers: what has happened, the term, and the lease
--                             of a candidate that has won
--
-- A claim stands while both sides say so: the election names the lease and the nonce; and the
-- lease, which expires by itself, names the election with the same nonce and term.
local P = ARGV[1]

local function lease_key(id) return P .. 'lease:' .. id end
local function election_key(name) return P .. 'election:' .. name end

-- Lua's numbers are doubles, exact up to 2^53, and tostring() would print 1.79e+12.
local function str(number) return string.format('%.0f', number) end

-- The server's wall clock: milliseconds, and microseconds as text.
local function clock()
	local t = redis.call('TIME')
	return t[1] * 1000 + math.floor(t[2] / 1000), t[1] .. string.format('%06d', t[2])
end

-- Adds a name to what list.lua lists.
local function enlist(name) redis.call('ZADD', P .. 'elections', 0, name) end

local function hint(name, what, term)
	redis.call('PUBLISH', P .. 'hint:' .. name, what .. ' ' .. term)
end

-- e: {term, lease, nonce}. Returns what the lease says of the claim, {claim, owner, address, ttl};
-- or nil: the claim doesn't stand.
local function holder(name, e)
	if not e[1] or not e[2] or not e[3] then return nil end
	local l = redis.call('HMGET', lease_key(e[2]), 'claim:' .. name, 'owner', 'address', 'ttl')
	if l[1] ~= e[3] .. ' ' .. e[1] then return nil end
	return l
end

local function has_healthy(name, id)
	local all = redis.call('HGETALL', P .. 'candidates:' .. name)
	for i = 1, #all, 2 do
		if string.match(all[i + 1], '^%d+\t%-?%d+\t%d+\t1\t') and
				redis.call('HGET', lease_key(all[i]), 'owner') == id then
			return true
		end
	end
	return false
end

-- How many ms a lease has left. -1: for ever; -2: it is gone. A lease that has more left than its
-- ttl was renewed before the server's clock was set back. It is cut, or no candidate would win for
-- hours.
local function lease_left(id, ttl)
	local left, lasts = redis.call('PTTL', lease_key(id)), tonumber(ttl or '')
	if not lasts or left <= lasts then return left end
	redis.call('PEXPIRE', lease_key(id), ttl)
	return lasts
end

-- The same for a reservation.
local function reserved_left(name, now, till, ms)
	local left, lasts = tonumber(till or '0') - now, tonumber(ms or '')
	if not lasts or left <= lasts then return left end
	redis.call('HSET', election_key(name), 'reserved_until', str(now + lasts))
	return lasts
end

-- Returns held, term, paused, free in ms (-1: not by itself), reserved; if no candidate can win
-- yet, what waits() adds; if the election is held: lease, nonce, since, priority, score, metadata,
-- leader, address, order (id, kind, quiet, target, target_ok), how many candidates there are.
local function record(name, asker, now)
	local e = redis.call('HMGET', election_key(name), 'term', 'lease', 'nonce', 'paused',
		'reserved_for', 'reserved_until', 'since', 'priority', 'score', 'metadata',
		'order_id', 'order_kind', 'order_quiet', 'order_target', 'reserved_ms')
	local r = {'0', e[1] or '0', e[4] and '1' or '0', '-1', '0'}
	local l = holder(name, e)
	local kept = e[5] and e[5] ~= asker and reserved_left(name, now, e[6], e[15]) or 0
	if l then
		local target = e[14] or ''
		local ok = target ~= '' and has_healthy(name, target)
		r = {'1', e[1], r[3], str(lease_left(e[2], l[4])), '0', e[2], e[3],
			e[7] or '0', e[8] or '0', e[9] or '0', e[10] or '', l[2] or '', l[3] or '',
			e[11] or '0', e[12] or '0', e[13] or '0', target, ok and '1' or '0',
			tostring(redis.call('HLEN', P .. 'candidates:' .. name))}
	elseif kept > 0 then
		r[4], r[5] = str(kept), '1'
	end
	return r, e[2]
end

-- Ends the leadership at the head of the list, if it has no end yet. note: that of the order that
-- ended it, or nil.
local function history_end(name, us, why, note)
	local key = P .. 'history:' .. name
	local top = redis.call('LINDEX', key, 0)
	local term, since, rest = string.match(top or '', '^(%d+)\t(%d+)\t\t\t(.*)$')
	if term then
		redis.call('LSET', key, 0, term .. '\t' .. since .. '\t' .. us .. '\t' .. why .. '\t' ..
			rest .. (note and '\t' .. note or ''))
	end
end

-- Takes the claim off the election. The caller writes a reservation, if there is one.
local function unclaim(name, lease, term, us, why)
	local by_order = why == 'ordered' or why == 'transferred'
	local note = by_order and redis.call('HGET', election_key(name), 'order_note')
	redis.call('HDEL', lease_key(lease), 'claim:' .. name)
	redis.call('HDEL', election_key(name), 'lease', 'nonce', 'since', 'leader', 'priority',
		'score', 'metadata', 'order_id', 'order_kind', 'order_quiet', 'order_target',
		'order_note', 'reserved_for', 'reserved_until', 'reserved_ms')
	history_end(name, us, why, note)
	hint(name, 'free', term)
end

-- Returns which run of the server this is, for how many seconds it is up, and which stream of
-- writes it has; and whether it has followed another server in this run, or its replicas have
-- followed it through a restart.
local function server()
	local info = redis.call('INFO', 'server')
	local run = string.match(info, 'run_id:(%x+)')
	local up = tonumber(string.match(info, 'uptime_in_seconds:(%d+)'))
	info = redis.call('INFO', 'replication')
	local replid = string.match(info, 'master_replid:(%x+)')
	local followed = string.match(info, 'second_repl_offset:(%-?%d+)') ~= '-1'
	return run, up, replid, followed
end

-- Adds to the record of a free election for how many ms no candidate wins it, and why: for how many
-- seconds this server is up, and whether it has followed another one.
local function waits(r, ms)
	local _, up, _, followed = server()
	r[4], r[6], r[7] = str(ms), str(up), followed and '1' or '0'
end

-- For how many ms no candidate wins, as the last guard() has found out.
local function waiting(now)
	local s = redis.call('HMGET', KEYS[1], 'until', 'max_lease')
	return math.min(tonumber(s[1] or '0') - now, tonumber(s[2] or '0'))
end

-- The record for an observer.
local function observed(name, asker, now, wait)
	local r = record(name, asker, now)
	if wait > 0 and r[1] == '0' and r[3] == '0' and r[5] == '0' then waits(r, wait) end
	return r
end

-- A server that has just started, or that is another one than before, may not know leases that it
-- or its predecessor has granted. So no candidate wins before the longest of them is over. Returns
-- how many ms that still takes, and which run of the server this is. max: the longest lease of the
-- namespace.
local function guard(now, max, durable)
	local run, up, replid, followed = server()
	local s = redis.call('HMGET', KEYS[1], 'run', 'replid', 'until')
	local till = tonumber(s[3] or '0')
	if s[1] == run and s[2] ~= replid and not followed then
		-- No other server has replaced it: a server gives its stream a new name when its
		-- first replica comes, and when the last replica has been gone for long.
		redis.call('HSET', KEYS[1], 'replid', replid)
		s[2] = replid
	end
	if s[1] ~= run or s[2] ~= replid then
		-- If there is no run, the namespace is new, or all was lost. Losing all takes a
		-- start of the server, unless it has taken over before it heard of us. If there is
		-- a run, this is another server, or another run of it, and its predecessor may have
		-- granted until now.
		local known = s[1] or followed
		till = now + (known and max or math.max(0, max - (up - 1) * 1000))
		if durable == '1' and not followed then till = 0 end
		redis.call('HSET', KEYS[1], 'run', run, 'replid', replid, 'until', str(till))
	elseif till - now > max then
		-- The clock was set back since. No candidate must wait longer than the longest lease.
		till = now + max
		redis.call('HSET', KEYS[1], 'until', str(till))
	end
	return till - now, run
end
