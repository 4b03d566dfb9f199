-- Tries: the same by force.
-- Expects: error
return redis.call('DEBUG', 'SEGFAULT')
