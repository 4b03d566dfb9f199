-- Tries: to list many keys again and again.
-- Expects: error
for i = 1, 20000 do redis.call('SET', 'k:' .. i, i) end
while true do redis.call('KEYS', '*') end
