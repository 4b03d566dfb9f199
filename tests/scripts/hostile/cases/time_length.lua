-- Tries: to ask for the length of a table of holes.
-- Expects: error
local t = {}
for i = 1, 100000 do t[i] = i end
while true do t[#t + 1] = 1 t[#t] = nil end
