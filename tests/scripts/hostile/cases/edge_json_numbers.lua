-- Tries: numbers that JSON does not know, very long ones.
-- Expects: either
for _, s in ipairs({string.rep('9', 100000), '1e' .. string.rep('9', 1000), '0x' .. string.rep('f', 1000),
                    '-' .. string.rep('-', 1000), '0.' .. string.rep('0', 100000) .. '1'}) do
  pcall(cjson.decode, s)
end
return 1
