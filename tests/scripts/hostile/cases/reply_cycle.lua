-- Tries: a table that holds itself.
-- Expects: either
local t = {} t[1] = t return t
