-- Tries: to write replies of its own into the stream.
-- Expects: error
return redis.error_reply('ERR x\r\n+OK\r\n:1\r\n')
