-- ARGV: 2 prefix, 3 after, 4 how many at most. Returns names in the order of their bytes; {} at the
-- end. Only an administrator deletes an election's record: such a name is taken off the set.
local key = P .. 'elections'
local from = ARGV[3] >= ARGV[2] and ARGV[3] ~= '' and '(' .. ARGV[3] or '[' .. ARGV[2]
local to = ARGV[2] ~= '' and '(' .. ARGV[2] .. '\255' or '+' -- no name has this byte
local r = {}
repeat
	local page = redis.call('ZRANGEBYLEX', key, from, to, 'LIMIT', 0, ARGV[4])
	for _, name in ipairs(page) do
		if redis.call('EXISTS', election_key(name)) == 1 then
			r[#r + 1] = name
		else
			redis.call('ZREM', key, name)
		end
		from = '(' .. name
	end
until #r > 0 or #page == 0
return r
