-- Tries: each first byte with nothing behind it.
-- Expects: reply :1
for i = 0, 255 do
  pcall(cmsgpack.unpack, string.char(i))
  pcall(cmsgpack.unpack, string.char(i, 255))
  pcall(cmsgpack.unpack, string.char(i, 255, 255, 255, 255))
  pcall(cmsgpack.unpack, string.char(i, 0, 0, 0, 0, 0, 0, 0, 0))
  pcall(cmsgpack.unpack_one, string.char(i), 2^31)
  pcall(cmsgpack.unpack_limit, string.char(i), 2^31 - 1, -2^31)
end
return 1
