-- ARGV: for each election, from 2: its name, the candidate that asks. Returns the record of each.
local now = clock()
local wait = waiting(now)
local r = {}
for i = 2, #ARGV, 2 do r[#r + 1] = observed(ARGV[i], ARGV[i + 1], now, wait) end
return r
