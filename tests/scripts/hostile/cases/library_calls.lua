-- Tries: to call commands while it is loaded.
-- Expects: error
-- As: library
#!lua name=hostile
redis.call('SET', 'k', 'v')
