-- Tries: a name of a megabyte.
-- Expects: error
local @{n * 1000000} = 1
return nothing_of_that_name
