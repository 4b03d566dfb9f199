-- Tries: numbers that are none as places of a list.
-- Expects: error
local t = {}
t[1/0], t[-1/0], t[2^53], t[2^63], t[-0.0] = 1, 2, 3, 4, 5
t[0/0] = 6
return 1
