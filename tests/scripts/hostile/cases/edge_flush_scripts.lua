-- Tries: to take the script away under itself.
-- Expects: error
return redis.call('SCRIPT', 'FLUSH')
