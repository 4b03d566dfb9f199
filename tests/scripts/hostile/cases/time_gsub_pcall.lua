-- Tries: callbacks of gsub that catch.
-- Expects: error
local s = string.rep('x', 1000)
local function again() pcall(string.gsub, s, 'x', again) return 'x' end
while true do pcall(string.gsub, s, 'x', again) end
