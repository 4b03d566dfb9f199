-- Tries: very many keys.
-- Expects: either
for i = 1, 10000000 do redis.call('SET', 'key:' .. i, 'x') end
return 1
