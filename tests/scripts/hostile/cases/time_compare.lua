-- Tries: comparisons of long texts, each one instruction.
-- Expects: error
local a = string.rep('x', 8000000) .. 'a'
local b = string.rep('x', 8000000) .. 'b'
local n = 0
while true do if a < b then n = n + 1 end end
