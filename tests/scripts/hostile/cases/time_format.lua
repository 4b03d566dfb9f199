-- Tries: to format long texts for ever.
-- Expects: error
local s = string.rep('%', 100000)
while true do string.format('%q', s) end
