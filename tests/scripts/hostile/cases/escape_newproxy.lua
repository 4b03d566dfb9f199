-- Tries: to have code run by the collector.
-- Expects: error
local proxy = newproxy(true)
getmetatable(proxy).__gc = function() while true do end end
return 1
