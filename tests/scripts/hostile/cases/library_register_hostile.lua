-- Tries: arguments of register_function that are not what they say.
-- Expects: error
-- As: library
#!lua name=hostile
pcall(redis.register_function, setmetatable({}, {__index = function() while true do end end}))
pcall(redis.register_function, {function_name = {}, callback = 1, flags = {1, {}, print}})
pcall(redis.register_function, 'f', setmetatable({}, {__call = function() end}))
error('end')
