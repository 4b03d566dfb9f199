-- Tries: a text that says it has 2^32 - 1 bytes.
-- Expects: error
return cmsgpack.unpack('\219\255\255\255\255abc')
