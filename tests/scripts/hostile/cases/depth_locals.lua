-- Tries: 300 locals in one function.
-- Expects: error
local a0 = 0 @{local a = 1  * 300}
return a
