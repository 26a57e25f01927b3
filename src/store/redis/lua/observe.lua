-- ARGV: for each, from 2: name, who asks. For each its record.
local now = clock()
local s = redis.call('HMGET', KEYS[1], 'until', 'max_lease')
local wait = math.min(tonumber(s[1] or '0') - now, tonumber(s[2] or '0'))
local r = {}
for i = 2, #ARGV, 2 do
	local one = record(ARGV[i], ARGV[i + 1], now)
	if wait > 0 and one[1] == '0' and one[3] == '0' and one[5] == '0' then waits(one, wait) end
	r[#r + 1] = one
end
return r
