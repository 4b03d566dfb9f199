-- Tries: to run code when the fields of the error are read.
-- Expects: error
error(setmetatable({}, {__index = function() while true do end end}))
