-- Tries: an error of 10 MB.
-- Expects: error
error(string.rep('long ', 2000000))
