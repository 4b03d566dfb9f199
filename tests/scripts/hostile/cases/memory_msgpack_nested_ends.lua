-- Tries: lists in lists that have no end.
-- Expects: error
return cmsgpack.unpack(string.rep('\145', 1000000))
