-- Tries: a sparse list that JSON fills with null.
-- Expects: either
cjson.encode_sparse_array(true, 0, 0)
return #cjson.encode({[1] = 1, [2^31] = 2})
