-- ARGV: 2 lease, 3 name
redis.call('HDEL', P .. 'candidates:' .. ARGV[3], ARGV[2])
return {}
