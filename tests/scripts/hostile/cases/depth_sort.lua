-- Tries: sort in sort: the stack of C.
-- Expects: either
local function f() table.sort({2, 1}, f) return false end
f()
return 1
