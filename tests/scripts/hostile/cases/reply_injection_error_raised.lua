-- Tries: the same by an error.
-- Expects: error
error('x\r\n+OK\r\n')
