-- Tries: a chain of 100,000 conditions.
-- Expects: either
return 1@{ and 1 * 100000}
