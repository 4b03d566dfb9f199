-- Tries: a range that has no end.
-- Expects: error
return table.concat({}, 'x', 1, 2^31 - 1)
