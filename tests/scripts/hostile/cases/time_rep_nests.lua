-- Tries: long texts out of texts.
-- Expects: error
local s = 'x'
while true do s = string.rep(s, 3):sub(1, 1000000) end
