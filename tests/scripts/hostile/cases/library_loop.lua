-- Tries: a library that never ends loading.
-- Expects: error
-- As: library
#!lua name=hostile
while true do end
