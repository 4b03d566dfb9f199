-- Tries: scripts in scripts.
-- Expects: error
return redis.call('EVAL', 'return 1', 0)
