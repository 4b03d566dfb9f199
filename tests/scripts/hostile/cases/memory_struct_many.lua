-- Tries: a million values on the stack.
-- Expects: error
return select('#', struct.unpack(string.rep('B', 1000000), string.rep('x', 1000000)))
