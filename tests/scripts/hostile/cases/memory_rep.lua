-- Tries: one text of 2 GiB.
-- Expects: either
return #string.rep('x', 2^31)
