-- Tries: 10,000 maps in each other.
-- Expects: either
local t = {map = {}}
for i = 1, 10000 do t = {map = {x = t}} end
return t
