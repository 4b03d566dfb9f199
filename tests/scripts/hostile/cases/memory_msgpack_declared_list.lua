-- Tries: a list that says it has 2^32 - 1 elements.
-- Expects: error
return cmsgpack.unpack('\221\255\255\255\255')
