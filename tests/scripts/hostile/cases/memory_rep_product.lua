-- Tries: lengths whose product overflows.
-- Expects: either
local s = string.rep('x', 2^16)
return #string.rep(s, 2^48)
