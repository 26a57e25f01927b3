-- ARGV: 2 an id that no other process has. Tries the commands of the other scripts on its own keys.
-- Returns, for each command that this user may not use, or not on these keys, its name and the
-- server's words.
local key = P .. 'doctor:' .. ARGV[2]
local list = key .. ':list'
local tries = {
	{'HSET', key, 'f', '1'}, {'PEXPIRE', key, '1000'}, {'PTTL', key}, {'EXISTS', key},
	{'HGET', key, 'f'}, {'HMGET', key, 'f'}, {'HGETALL', key}, {'HKEYS', key}, {'HLEN', key},
	{'HEXISTS', key, 'f'}, {'HSCAN', key, '0'}, {'HDEL', key, 'f'}, {'DEL', key},
	{'LPUSH', list, 'a'}, {'PEXPIRE', list, '1000'}, {'LSET', list, '0', 'b'},
	{'LINDEX', list, '0'}, {'LRANGE', list, '0', '0'}, {'LTRIM', list, '0', '0'}, {'DEL', list},
	{'ZADD', list, '0', 'a'}, {'PEXPIRE', list, '1000'}, {'ZRANGEBYLEX', list, '-', '+'},
	{'ZREM', list, 'a'},
	{'PUBLISH', P .. 'hint:' .. ARGV[2], 'doctor 0'}, {'TIME'}, {'INFO', 'server'},
}
local r = {}
for _, try in ipairs(tries) do
	local got = redis.pcall(unpack(try))
	if type(got) == 'table' and got.err then r[#r + 1] = try[1] .. ': ' .. got.err end
end
return r
