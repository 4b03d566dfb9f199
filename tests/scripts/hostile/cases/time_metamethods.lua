-- Tries: __index that asks itself.
-- Expects: error
local t = setmetatable({}, {})
getmetatable(t).__index = function(self, k) return self[k] end
return t.x
