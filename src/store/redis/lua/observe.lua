-- ARGV: for each, from 2: name, who asks. For each its record.
local now = clock()
local till = tonumber(redis.call('HGET', KEYS[1], 'until') or '0')
local r = {}
for i = 2, #ARGV, 2 do
	local one = record(ARGV[i], ARGV[i + 1], now)
	if till > now and one[1] == '0' and one[5] == '0' then one[4] = str(till - now) end
	r[#r + 1] = one
end
return r
