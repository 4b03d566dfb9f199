-- Tries: the same of find and its kin.
-- Expects: either
for _, n in ipairs({-2^63, 2^63, 2^31, -2^31, 1/0, -1/0, 0/0}) do
  pcall(string.find, 'abc', 'b', n)
  pcall(string.find, 'abc', 'b', n, true)
  pcall(string.match, 'abc', 'b', n)
  pcall(string.gsub, 'abc', 'b', 'x', n)
  pcall(string.rep, 'abc', -n)
end
return 1
