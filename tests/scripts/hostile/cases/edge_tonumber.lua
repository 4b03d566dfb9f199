-- Tries: texts that nearly are numbers, very long.
-- Expects: either
for _, s in ipairs({string.rep('9', 1000000), string.rep(' ', 1000000), '0x' .. string.rep('f', 100000),
                    '1e' .. string.rep('1', 1000)}) do
  tonumber(s) tonumber(s, 10) tonumber(s, 36)
end
return 1
