-- Tries: to leave the caller in another database.
-- Expects: reply $-1
redis.call('SELECT', 5)
redis.call('SET', 'k', 'in 5')
redis.call('SELECT', 6)
return redis.call('GET', 'k')
