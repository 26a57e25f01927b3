-- ARGV: 2 name, 3 '1' or '0'
local key = election_key(ARGV[2])
local was = redis.call('HEXISTS', key, 'paused') == 1
if was == (ARGV[3] == '1') then return {} end
if was then redis.call('HDEL', key, 'paused') else redis.call('HSET', key, 'paused', '1') end
if not was then
	enlist(ARGV[2])
elseif redis.call('EXISTS', key) == 0 then
	redis.call('ZREM', P .. 'elections', ARGV[2])
end
hint(ARGV[2], was and 'resumed' or 'paused', redis.call('HGET', key, 'term') or '0')
return {}
