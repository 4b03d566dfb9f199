-- Tries: a million elements.
-- Expects: either
local t = {}
for i = 1, 1000000 do t[i] = i end
return t
