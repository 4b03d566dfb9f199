-- Tries: a value that is long at once.
-- Expects: either
return redis.call('SETRANGE', 'far', 536870911, 'x')
