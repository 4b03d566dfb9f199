-- Tries: JSON of tables that share each other: 2^40 long.
-- Expects: error
local t = {'x'}
for i = 1, 40 do t = {t, t} end
return #cjson.encode(t)
