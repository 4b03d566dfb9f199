-- Tries: the same, flat and wide.
-- Expects: error
local a, b, c = {}, {}, {}
for i = 1, 2000 do a[i] = i end
for i = 1, 2000 do b[i] = a end
for i = 1, 2000 do c[i] = b end
return c
