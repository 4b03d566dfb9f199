-- Tries: a text that does not end.
-- Expects: error
return 'open
