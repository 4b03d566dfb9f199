-- Tries: functions that call themselves.
-- Expects: error
local function f() return 1 + f() end
return f()
