-- Tries: JSON that is six times as long as its text.
-- Expects: either
return #cjson.encode(string.rep('\1', 20000000))
