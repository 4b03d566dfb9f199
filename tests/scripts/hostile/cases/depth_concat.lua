-- Tries: a chain of 100,000 concatenations.
-- Expects: error
local a = 'x'
return a@{..a * 100000}
