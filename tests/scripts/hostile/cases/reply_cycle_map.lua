-- Tries: a map that holds itself.
-- Expects: either
local t = {map = {}}
t.map.x = t
return t
