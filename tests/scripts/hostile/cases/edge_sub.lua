-- Tries: the same of sub.
-- Expects: either
local s = 'abc'
return {s:sub(-2^31, 2^31), s:sub(2^53, -2^53), s:sub(-2^63, 2^63), s:sub(0/0, 1/0), s:sub(1e300, -1e300)}
