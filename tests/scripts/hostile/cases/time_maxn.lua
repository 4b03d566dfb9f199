-- Tries: to walk over a table inside of C.
-- Expects: error
local t = {}
for i = 1, 500000 do t[i] = i end
while true do table.maxn(t) end
