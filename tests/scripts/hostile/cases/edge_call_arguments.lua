-- Tries: a command of very many words.
-- Expects: either
local t = {}
for i = 1, 7900 do t[i] = 'k' .. i end
return redis.call('DEL', unpack(t))
