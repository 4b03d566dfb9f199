-- Tries: a line of 4 MB without an end.
-- Expects: error
return @{x * 4000000}
