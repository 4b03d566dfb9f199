-- Tries: the same, and catches.
-- Expects: error
-- As: library
#!lua name=hostile
while true do pcall(function() while true do end end) end
