-- Tries: the whole range of an integer.
-- Expects: error
return unpack({1}, -2147483648, 2147483647)
