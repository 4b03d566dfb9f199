-- Tries: a text that is formatted to many times its length.
-- Expects: error
local s = string.rep('x', 1000000)
return #string.format(string.rep('%s', 200), unpack((function()
  local t = {} for i = 1, 200 do t[i] = s end return t end)()))
