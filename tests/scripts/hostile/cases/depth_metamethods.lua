-- Tries: metamethods in metamethods.
-- Expects: error
local m = {}
m.__add = function(a, b) return a + b end
m.__concat = function(a, b) return a .. b end
m.__tostring = function(t) return tostring(t) end
local t = setmetatable({}, m)
pcall(function() return t + 1 end)
pcall(function() return t .. 'x' end)
return tostring(t)
