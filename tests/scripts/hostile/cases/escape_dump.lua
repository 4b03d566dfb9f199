-- Tries: to get the bytecode of a function of its own and change it.
-- Expects: error
return string.dump(function() return 1 end)
