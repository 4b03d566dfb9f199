-- Tries: to wait for a claim inside of a script.
-- Expects: error
return redis.call('SEMEL.WAIT', 'orders', 'x', 0)
