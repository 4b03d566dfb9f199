-- Tries: a table that holds itself, twice.
-- Expects: either
local t = {}
t[1], t[2], t[3] = t, t, t
return #cmsgpack.pack(t)
