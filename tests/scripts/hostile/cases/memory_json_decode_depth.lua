-- Tries: to allow any depth when reading.
-- Expects: error
cjson.decode_max_depth(2^31 - 1)
return cjson.decode(string.rep('[', 1000000)) ~= nil
