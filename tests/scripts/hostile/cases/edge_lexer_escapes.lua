-- Tries: escapes that are none.
-- Expects: error
return '\999'
