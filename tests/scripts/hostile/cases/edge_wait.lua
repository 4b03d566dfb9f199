-- Tries: to wait inside of a script.
-- Expects: either
return redis.call('WAIT', 1, 0)
