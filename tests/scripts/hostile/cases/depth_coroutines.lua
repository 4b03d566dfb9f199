-- Tries: coroutines in coroutines.
-- Expects: either
local function f(n) return coroutine.wrap(f)(n + 1) end
return f(1)
