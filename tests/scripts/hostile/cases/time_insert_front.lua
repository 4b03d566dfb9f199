-- Tries: to move a long list again and again.
-- Expects: either
local t = {}
for i = 1, 300000 do t[i] = i end
for i = 1, 100000 do table.insert(t, 1, i) end
return 1
