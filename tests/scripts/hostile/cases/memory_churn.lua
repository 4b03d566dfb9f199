-- Tries: to use little at once and very much altogether.
-- Expects: error
while true do local s = string.rep('x', 1000000) end
