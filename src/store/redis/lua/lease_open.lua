-- ARGV: 2 lease, 3 owner, 4 address, 5 ttl, 6 the namespace's longest lease, 7 durable
-- Returns {'ok'}; or {'max', number} if the namespace has another longest lease; or {'durable',
-- flag} if other candidates say otherwise, because one of them alone would switch the guard off for
-- all.
local agreed = redis.call('HMGET', KEYS[1], 'max_lease', 'durable')
if agreed[1] and agreed[1] ~= ARGV[6] then return {'max', agreed[1]} end
if agreed[2] and agreed[2] ~= ARGV[7] then return {'durable', agreed[2]} end
local key = lease_key(ARGV[2])
guard(clock(), tonumber(ARGV[6]), ARGV[7])
redis.call('HSET', KEYS[1], 'max_lease', ARGV[6], 'durable', ARGV[7])
redis.call('HSET', key, 'owner', ARGV[3], 'address', ARGV[4], 'ttl', ARGV[5])
redis.call('PEXPIRE', key, ARGV[5])
return {'ok'}
