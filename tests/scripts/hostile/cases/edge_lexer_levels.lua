-- Tries: a long bracket of 100,000 levels.
-- Expects: either
return [@{= * 100000}[x]@{= * 100000}]
