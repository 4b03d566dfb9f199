-- Tries: to catch what ends it.
-- Expects: error
while true do pcall(function() while true do end end) end
