-- Tries: a library that keeps very much.
-- Expects: either
-- As: library
#!lua name=hostile
local kept = {}
for i = 1, 100000000 do kept[i] = {i} end
redis.register_function('f', function() return #kept end)
