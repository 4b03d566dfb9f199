-- Tries: gsub in gsub in gsub: the stack of C.
-- Expects: either
local function f() return (string.gsub('x', 'x', f)) end
return f()
