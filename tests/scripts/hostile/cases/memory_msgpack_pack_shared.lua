-- Tries: tables that share each other.
-- Expects: either
local t = {'x'}
for i = 1, 60 do t = {t, t} end
return #cmsgpack.pack(t)
