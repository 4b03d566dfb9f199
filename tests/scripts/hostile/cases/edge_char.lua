-- Tries: bytes that are none.
-- Expects: error
return string.char(2^31, -2^31, 0/0)
