-- Tries: very much padding.
-- Expects: either
return #struct.pack(string.rep('x', 50000000))
