-- Tries: a library of 100,000 functions.
-- Expects: either
-- As: library
#!lua name=hostile
for i = 1, 100000 do redis.register_function('f' .. i, function() return i end) end
