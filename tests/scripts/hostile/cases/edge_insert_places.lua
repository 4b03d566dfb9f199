-- Tries: places beyond both ends of a list.
-- Expects: either
local t = {1, 2, 3}
for _, n in ipairs({0, -1, 100, 2^31, -2^31, 2^53, 1/0, -1/0, 0/0}) do
  pcall(table.insert, t, n, 'x')
  pcall(table.remove, t, n)
  pcall(table.concat, t, ',', n, n)
  pcall(table.concat, t, ',', -n, n)
end
return 1
