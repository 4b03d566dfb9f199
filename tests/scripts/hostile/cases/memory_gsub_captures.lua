-- Tries: the same by captures.
-- Expects: error
local s = string.rep('x', 20000)
return #string.gsub(s, '(.*)', string.rep('%1', 20000))
