-- Tries: to replace what guards the tables.
-- Expects: reply :0
local done = 0
for _, t in ipairs({_G, redis, string, table, math, cjson, getmetatable('')}) do
  if pcall(setmetatable, t, {}) then done = done + 1 end
  if pcall(setmetatable, t, nil) then done = done + 1 end
  local m = getmetatable(t)
  if type(m) == 'table' then
    if pcall(rawset, m, '__newindex', nil) then done = done + 1 end
    if pcall(function() m.__index = nil end) then done = done + 1 end
  end
end
return done
