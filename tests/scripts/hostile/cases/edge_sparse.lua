-- Tries: a list with an element at 2^30.
-- Expects: either
local t = {}
t[2^30], t[2^26], t[1] = 1, 1, 1
return #t
