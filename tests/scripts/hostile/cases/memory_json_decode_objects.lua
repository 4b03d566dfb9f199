-- Tries: the same with objects.
-- Expects: error
pcall(cjson.decode_max_depth, 2^31 - 1)
return cjson.decode(string.rep('{"a":', 1000000)) ~= nil
