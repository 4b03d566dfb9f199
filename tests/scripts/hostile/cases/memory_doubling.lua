-- Tries: to double a text.
-- Expects: error
local s = 'x'
while true do s = s .. s end
