-- Tries: to join the same thing all the time.
-- Expects: error
local t = {}
for i = 1, 10000 do t[i] = 'xxxxxxxxxx' end
while true do table.concat(t) end
