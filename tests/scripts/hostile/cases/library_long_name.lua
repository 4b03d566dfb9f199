-- Tries: names of a megabyte.
-- Expects: either
-- As: library
#!lua name=@{n * 1000000}
redis.register_function('f', function() end)
