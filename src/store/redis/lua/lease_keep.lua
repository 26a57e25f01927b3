-- KEYS: 1 the lease. ARGV: 2 ttl. {'gone'}, or {'ok', claims}.
--
-- On a node that a slot of the cluster is being moved to. What isn't here may still be elsewhere, so
-- no other key is looked at.
if redis.call('EXISTS', KEYS[1]) == 0 then return {'gone'} end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {'ok', str(redis.call('HLEN', KEYS[1]) - 3)}
