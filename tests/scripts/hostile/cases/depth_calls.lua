-- Tries: a chain of 100,000 calls.
-- Expects: either
local a = function() end
return a@{() * 100000}
