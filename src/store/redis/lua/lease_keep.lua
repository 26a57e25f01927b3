-- KEYS: 1 the lease. ARGV: 2 ttl. Returns {'gone'}, or {'ok', number of claims}.
--
-- It runs on a node that a slot of the cluster is being moved to. A key that isn't here may still
-- be on the old node, so the script looks at no other key.
if redis.call('EXISTS', KEYS[1]) == 0 then return {'gone'} end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {'ok', str(redis.call('HLEN', KEYS[1]) - 3)}
