-- Tries: tables that share each other: 2^60 elements.
-- Expects: error
local t = {1, 2}
for i = 1, 60 do t = {t, t} end
return t
