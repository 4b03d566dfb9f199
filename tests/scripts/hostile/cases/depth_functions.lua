-- Tries: 100,000 functions in each other.
-- Expects: error
return @{function() return  * 100000}1@{ end * 100000}
