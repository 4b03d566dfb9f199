-- Tries: to yield out of a function of C.
-- Expects: either
local co = coroutine.wrap(function()
  return string.gsub('abc', '.', function() coroutine.yield(1) end)
end)
co()
local sorted = coroutine.wrap(function()
  table.sort({3, 2, 1}, function(a, b) coroutine.yield(1) return a < b end)
end)
sorted()
return 1
