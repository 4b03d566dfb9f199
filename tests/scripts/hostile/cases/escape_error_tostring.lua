-- Tries: to run code when the error is made into text.
-- Expects: error
error(setmetatable({}, {__tostring = function() while true do end end}))
