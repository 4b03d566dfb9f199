-- Tries: to compile for ever.
-- Expects: error
local s = string.rep('local x = 1 ', 150)
while true do loadstring('do ' .. s .. ' end')() end
