-- Tries: the same by a status.
-- Expects: either
return redis.status_reply('OK\r\n-ERR injected\r\n$5\r\nhello\r\n')
