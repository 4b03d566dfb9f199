-- Tries: JSON of a list that names one long text a million times.
-- Expects: error
local long = string.rep('x', 100000)
local t = {}
for i = 1, 1000000 do t[i] = long end
return #cjson.encode(t)
