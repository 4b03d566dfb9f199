-- Tries: functions of C that take long for one instruction.
-- Expects: error
local s = string.rep('x', 10000000)
while true do string.upper(s) string.reverse(s) string.lower(s) end
