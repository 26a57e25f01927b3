-- ARGV: for each, from 2: name, who asks. For each its record.
local now = clock()
local wait = waiting(now)
local r = {}
for i = 2, #ARGV, 2 do r[#r + 1] = observed(ARGV[i], ARGV[i + 1], now, wait) end
return r
