-- Tries: a hash with very many fields.
-- Expects: either
for i = 1, 1000000 do redis.call('HSET', 'h', i, i) end
return 1
