-- Tries: 100,000 times not.
-- Expects: error
return @{not  * 100000}1
