-- Tries: each letter, with sizes beyond both ends.
-- Expects: reply :1
for i = 1, 255 do
  local letter = string.char(i)
  for _, size in ipairs({'', '0', '1', '9', '33', '2147483647', '2147483648', '99999999999999999999'}) do
    pcall(struct.pack, letter .. size, 1)
    pcall(struct.unpack, letter .. size, 'abcdefghijkl')
    pcall(struct.unpack, letter .. size, 'abc', 2^31)
    pcall(struct.unpack, letter .. size, 'abc', -2^31)
    pcall(struct.size, letter .. size)
  end
end
return 1
