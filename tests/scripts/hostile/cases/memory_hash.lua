-- Tries: a table with names without end.
-- Expects: error
local t = {}
for i = 1, 2^53 do t['key ' .. i] = i end
