-- Tries: comparing equal texts of a megabyte.
-- Expects: either
local t = {}
for i = 1, 20 do t[i] = string.rep('x', 500000) .. i end
for i = 1, 1000 do table.sort(t, function(a, b) return a > b end) table.sort(t) end
return 1
