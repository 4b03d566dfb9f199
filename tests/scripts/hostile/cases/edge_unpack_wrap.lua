-- Tries: bounds whose difference overflows.
-- Expects: error
return unpack({1, 2, 3}, -2, 2147483647)
