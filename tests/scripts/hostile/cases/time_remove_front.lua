-- Tries: the same by removing.
-- Expects: either
local t = {}
for i = 1, 300000 do t[i] = i end
for i = 1, 300000 do table.remove(t, 1) end
return 1
