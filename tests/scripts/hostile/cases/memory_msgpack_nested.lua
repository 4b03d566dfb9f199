-- Tries: lists in lists, a million deep.
-- Expects: error
return type(cmsgpack.unpack(string.rep('\145', 1000000) .. '\1'))
