-- Tries: to write into libraries by functions of tables.
-- Expects: reply :0
local done = 0
for _, t in ipairs({redis, string, table, math}) do
  if pcall(table.insert, t, 'x') then done = done + 1 end
  if pcall(table.insert, t, 1, 'x') then done = done + 1 end
  if pcall(table.sort, t) and #t > 0 then done = done + 1 end
  if pcall(table.remove, t, 1) and #t > 0 then done = done + 1 end
end
return done
