-- Tries: one reply that holds one value very often.
-- Expects: either
redis.call('SET', 'big', string.rep('x', 1000000))
local keys = {}
for i = 1, 1000 do keys[i] = 'big' end
return #redis.call('MGET', unpack(keys))
