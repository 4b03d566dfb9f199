-- Tries: coroutines that catch inside.
-- Expects: error
while true do
  coroutine.wrap(function() while true do pcall(coroutine.yield) end end)()
end
