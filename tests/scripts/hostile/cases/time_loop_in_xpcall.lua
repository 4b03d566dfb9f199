-- Tries: to go on in the handler.
-- Expects: error
local function again() while true do end end
while true do xpcall(again, again) end
