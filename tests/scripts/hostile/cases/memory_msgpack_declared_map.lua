-- Tries: a map that says it has 2^32 - 1 pairs.
-- Expects: error
return cmsgpack.unpack('\223\255\255\255\255\1')
