-- Tries: to spread a list all the time.
-- Expects: error
local t = {}
for i = 1, 7000 do t[i] = i end
while true do select('#', unpack(t)) end
