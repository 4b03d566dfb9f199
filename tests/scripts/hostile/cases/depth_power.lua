-- Tries: a chain to the right.
-- Expects: error
return 1@{^1 * 100000}
