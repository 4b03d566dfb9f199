-- Tries: to catch the overflow at every level.
-- Expects: either
local function f() local ok, e = pcall(f) return e end
f()
return 1
