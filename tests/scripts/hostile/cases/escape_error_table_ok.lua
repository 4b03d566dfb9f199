-- Tries: the same with a status.
-- Expects: error
error({ok = 'x'})
