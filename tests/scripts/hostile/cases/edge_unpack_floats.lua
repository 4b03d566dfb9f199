-- Tries: bounds that are no integers.
-- Expects: either
pcall(unpack, {1}, 0/0, 0/0)
pcall(unpack, {1}, -1/0, 1/0)
pcall(unpack, {1}, 1, 2^53)
return 1
