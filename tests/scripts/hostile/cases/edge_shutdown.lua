-- Tries: to end the server.
-- Expects: error
return redis.call('SHUTDOWN', 'NOSAVE')
