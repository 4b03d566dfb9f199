-- Tries: 100,000 signs.
-- Expects: error
return @{- -  * 100000}1
