-- Tries: errors and statuses with zero bytes.
-- Expects: error
return redis.error_reply('a\0b')
