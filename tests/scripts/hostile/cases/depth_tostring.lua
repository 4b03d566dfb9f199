-- Tries: __tostring by way of error.
-- Expects: error
local t
t = setmetatable({}, {__tostring = function() error(t) end})
return tostring(t)
