-- Tries: sets that are read again for each byte.
-- Expects: either
local set = '[' .. string.rep('a-b', 20000) .. ']'
return string.find(string.rep('c', 100000), '%f' .. set)
