-- Tries: tables without end.
-- Expects: error
local t = {}
while true do t[#t + 1] = {} end
