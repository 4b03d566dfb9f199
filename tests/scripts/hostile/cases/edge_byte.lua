-- Tries: places beyond both ends.
-- Expects: either
local s = 'abc'
pcall(string.byte, s, -2^31, 2^31)
pcall(string.byte, s, 2^31, -2^31)
pcall(string.byte, s, 0/0, 1/0)
pcall(string.byte, string.rep('x', 1000000), 1, -1)
return {s:byte(-100, 100)}
