-- Tries: a list on which sorting is slow.
-- Expects: either
local t = {}
for i = 1, 300000 do t[i] = i % 2 end
table.sort(t, function(a, b) return a < b end)
return 1
