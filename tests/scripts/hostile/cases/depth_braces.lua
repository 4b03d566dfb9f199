-- Tries: a source of 100,000 braces.
-- Expects: error
return @{{ * 100000}@{} * 100000}
