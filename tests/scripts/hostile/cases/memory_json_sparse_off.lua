-- Tries: a sparse list of 2^31, with nothing that refuses it.
-- Expects: error
cjson.encode_sparse_array(false, 0)
return #cjson.encode({[2^31 - 1] = 2})
