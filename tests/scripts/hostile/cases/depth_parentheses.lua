-- Tries: a source of 100,000 parentheses.
-- Expects: error
return @{( * 100000}1@{) * 100000}
