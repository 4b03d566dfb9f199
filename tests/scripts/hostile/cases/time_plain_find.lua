-- Tries: a search that nearly fits everywhere.
-- Expects: either
local text = string.rep('a', 2000000)
local what = string.rep('a', 1000000) .. 'b'
for i = 1, 1000 do string.find(text, what, 1, true) end
return 1
