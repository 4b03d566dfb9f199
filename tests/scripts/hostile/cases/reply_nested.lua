-- Tries: 10,000 tables in each other.
-- Expects: either
local t = {}
for i = 1, 10000 do t = {t} end
return t
