-- Tries: coroutines that resume each other.
-- Expects: either
local function nest(n)
  local co = coroutine.create(nest)
  return coroutine.resume(co, n + 1)
end
nest(1)
return 1
