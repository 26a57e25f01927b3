-- ARGV: 2 name, 3 how many at most
return redis.call('LRANGE', P .. 'history:' .. ARGV[2], 0, tonumber(ARGV[3]) - 1)
