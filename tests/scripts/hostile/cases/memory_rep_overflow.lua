-- Tries: a length that overflows.
-- Expects: either
return #string.rep('xx', 2^63)
