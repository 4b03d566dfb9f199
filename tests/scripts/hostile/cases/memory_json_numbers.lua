-- Tries: cjson with a precision and a buffer that stays.
-- Expects: either
pcall(cjson.encode_keep_buffer, true)
local t = {}
for i = 1, 500000 do t[i] = i / 3 end
return #cjson.encode(t)
