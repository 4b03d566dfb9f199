-- Tries: places beyond both ends.
-- Expects: either
pcall(select, 2^31, 1)
pcall(select, -2^31, 1)
pcall(select, 0/0, 1)
pcall(select, 1/0, 1)
return select(2^53, 1) == nil
