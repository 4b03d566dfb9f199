-- Tries: to change what null is.
-- Expects: reply :0
local done = 0
if pcall(setmetatable, cjson.null, {}) then done = 1 end
if pcall(function() cjson.null = 5 end) then done = done + 1 end
if pcall(function() cjson.null.x = 5 end) then done = done + 1 end
return done
