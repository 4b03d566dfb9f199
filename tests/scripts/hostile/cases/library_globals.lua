-- Tries: to change globals while it is loaded.
-- Expects: error
-- As: library
#!lua name=hostile
string.rep = nil
