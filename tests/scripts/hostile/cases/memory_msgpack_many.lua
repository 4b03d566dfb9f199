-- Tries: a million values at once on the stack.
-- Expects: error
return select('#', cmsgpack.unpack(string.rep('\1', 1000000)))
