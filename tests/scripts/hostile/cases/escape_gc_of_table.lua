-- Tries: the same by a table, and to be collected later.
-- Expects: reply :1
for i = 1, 1000 do
  setmetatable({}, {__gc = function() while true do end end})
end
collectgarbage('collect')
return 1
