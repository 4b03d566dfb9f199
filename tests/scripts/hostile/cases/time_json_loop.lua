-- Tries: to encode for ever.
-- Expects: error
local t = {}
for i = 1, 10000 do t[i] = 'text ' .. i end
while true do cjson.decode(cjson.encode(t)) end
