-- Tries: digits whose sign cannot be changed.
-- Expects: either
return bit.tohex(65535, -2147483648)
