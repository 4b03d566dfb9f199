-- Tries: just as many as the stack may take, then more.
-- Expects: either
for n = 7900, 8200 do pcall(unpack, {}, 1, n) end
return 1
