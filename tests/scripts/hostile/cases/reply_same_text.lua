-- Tries: one megabyte a hundred thousand times.
-- Expects: error
local mega = string.rep('x', 1000000)
local t = {}
for i = 1, 100000 do t[i] = mega end
return t
