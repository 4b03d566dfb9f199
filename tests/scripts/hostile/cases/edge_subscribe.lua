-- Tries: to make the caller a listener.
-- Expects: error
return redis.call('SUBSCRIBE', 'c')
