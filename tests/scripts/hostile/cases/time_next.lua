-- Tries: to look for the next of a table that is nearly empty.
-- Expects: either
local t = {}
for i = 1, 1000000 do t['k' .. i % 1000 .. ':' .. i] = 1 if i % 20 == 0 then t = {} end end
local big = {}
for i = 1, 200000 do big[i] = i end
for i = 1, 199999 do big[i] = nil end
for i = 1, 100000 do next(big) end
return 1
