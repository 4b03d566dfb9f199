-- Tries: escapes of every byte, cut at every place.
-- Expects: reply :1
for i = 0, 255 do
  loadstring('return "\\' .. string.char(i))
  loadstring('return "\\' .. string.char(i) .. '"')
  loadstring('return "\\x' .. string.char(i) .. '"')
  loadstring('return "\\u{' .. string.char(i))
  loadstring('return ' .. string.char(i) .. string.char(i))
  loadstring('--' .. string.char(i, i, i))
  loadstring('[[' .. string.char(i))
  loadstring('return 0' .. string.char(i))
  loadstring('return 1e' .. string.char(i))
  loadstring('goto ' .. string.char(i))
end
return 1
