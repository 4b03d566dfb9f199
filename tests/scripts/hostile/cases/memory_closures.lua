-- Tries: functions that are all kept.
-- Expects: error
local kept = {}
while true do local x = {} kept[#kept + 1] = function() return x end end
