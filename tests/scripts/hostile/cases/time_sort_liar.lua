-- Tries: a comparator that lies.
-- Expects: either
local t = {}
for i = 1, 100000 do t[i] = i end
table.sort(t, function(a, b) return true end)
return 1
