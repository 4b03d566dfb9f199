-- Tries: a library of 100,000 parentheses.
-- Expects: error
-- As: library
#!lua name=hostile
return @{( * 100000}1@{) * 100000}
