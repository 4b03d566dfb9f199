-- Tries: one long text packed many times.
-- Expects: error
local long = string.rep('x', 1000000)
local t = {}
for i = 1, 10000 do t[i] = long end
return #cmsgpack.pack(t)
