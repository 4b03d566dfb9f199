-- Tries: a chain of 100,000 fields.
-- Expects: either
local a
return a@{.b * 100000}
