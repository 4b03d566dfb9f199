-- Tries: values of the server that become huge.
-- Expects: error
local s = string.rep('x', 1000000)
for i = 1, 100000 do redis.call('APPEND', 'big', s) end
return redis.call('STRLEN', 'big')
