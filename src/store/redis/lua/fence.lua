-- A guard against leaders of the past, for what is kept in Redis: check and write are one step.
--   EVALSHA sha 2 FENCE KEY TERM COMMAND WORD...
-- KEYS: 1 where the highest term is kept, then what the command touches (one slot, in a cluster).
-- ARGV: 1 the term, then the command, which is carried out and answered unless that term is over.
-- Without a command it only raises the fence. See "Fencing" in baton-redis(7).
local fence, term = KEYS[1], ARGV[1] or ''
-- Terms have up to 64 bits and numbers of Lua 53: so they are compared as texts.
if not string.match(term, '^[1-9]%d*$') or #term > 20 then
	return redis.error_reply('FENCED only a leader may write to ' .. fence .. ': it has a term')
end
local highest = redis.call('GET', fence) or '0'
if #highest > #term or #highest == #term and highest > term then
	return redis.error_reply('FENCED term ' .. term .. ' is over: ' .. fence ..
		' was written to in term ' .. highest)
end
if highest ~= term then redis.call('SET', fence, term) end
if #ARGV == 1 then return term end
return redis.call(unpack(ARGV, 2))
