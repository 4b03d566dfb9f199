-- Tries: the same depth by loadstring, caught.
-- Expects: reply :1
local made = 0
for _, pair in ipairs({{'(', ')'}, {'{', '}'}, {'-', ''}, {'not ', ''}}) do
  local f = loadstring('return ' .. string.rep(pair[1] .. ' ', 100000) .. '1' .. string.rep(pair[2], 100000))
  if f then made = made + 1 end
end
return made <= 4
