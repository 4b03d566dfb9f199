-- Tries: to allow any depth, and use it.
-- Expects: error
cjson.encode_max_depth(2^31 - 1)
local t = {}
for i = 1, 500000 do t = {t} end
return #cjson.encode(t)
