-- Tries: handlers that fail in handlers.
-- Expects: either
local function handler() return xpcall(error, handler) end
for i = 1, 100 do xpcall(error, handler) end
return 1
