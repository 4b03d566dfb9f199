-- Tries: a function that never ends.
-- Expects: error
-- As: fcall
#!lua name=hostile
redis.register_function('f', function() while true do pcall(error) end end)
