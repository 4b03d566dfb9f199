-- Tries: a glob of stars on long names.
-- Expects: either
redis.call('SET', string.rep('a', 100000), 1)
return redis.call('KEYS', string.rep('*a', 50) .. 'b')
