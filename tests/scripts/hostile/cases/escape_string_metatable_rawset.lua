-- Tries: the same behind __newindex.
-- Expects: error
rawset(getmetatable(''), '__index', nil)
