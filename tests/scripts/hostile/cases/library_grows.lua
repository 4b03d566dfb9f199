-- Tries: a function that keeps more with each call.
-- Expects: either
-- As: fcall
#!lua name=hostile
local kept = {}
redis.register_function('f', function()
  while true do kept[#kept + 1] = string.rep('x', 100000) .. #kept end
end)
