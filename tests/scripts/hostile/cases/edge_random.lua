-- Tries: ranges that overflow.
-- Expects: either
pcall(math.random, -2^63, 2^63)
pcall(math.random, 0/0)
pcall(math.random, 1/0)
pcall(math.random, 2^31, -2^31)
math.randomseed(0/0) math.randomseed(1/0)
return math.random(-2^31, 2^31 - 1) ~= nil
