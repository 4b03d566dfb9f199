-- Tries: to run code while the reply is written.
-- Expects: either
local t = setmetatable({}, {__index = function(_, i) return redis.call('INCR', 'n') end})
return t
