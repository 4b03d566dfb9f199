-- Tries: a long set for each byte.
-- Expects: either
return string.find(string.rep('z', 200000), '[' .. string.rep('ab', 50000) .. ']')
