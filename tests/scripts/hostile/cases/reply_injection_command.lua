-- Tries: the same by the name of a command.
-- Expects: error
return redis.call('x\r\n+OK\r\n', 'y\r\n:5\r\n')
