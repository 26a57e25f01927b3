-- ARGV: 2 lease, 3 owner, 4 address, 5 ttl, 6 the namespace's longest lease, 7 durable
-- {'ok'}, or {'max', number} where the namespace has another longest lease.
local max = redis.call('HGET', KEYS[1], 'max_lease')
if max and max ~= ARGV[6] then return {'max', max} end
local key = lease_key(ARGV[2])
guard(clock(), tonumber(ARGV[6]), ARGV[7])
redis.call('HSET', KEYS[1], 'max_lease', ARGV[6])
redis.call('HSET', key, 'owner', ARGV[3], 'address', ARGV[4])
redis.call('PEXPIRE', key, ARGV[5])
return {'ok'}
