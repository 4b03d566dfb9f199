-- Tries: replies of the server that are huge together.
-- Expects: error
redis.call('SET', 'big', string.rep('x', 10000000))
local kept = {}
for i = 1, 1000 do kept[i] = redis.call('GETRANGE', 'big', i, -1) end
return #kept
