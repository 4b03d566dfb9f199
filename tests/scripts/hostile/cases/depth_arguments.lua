-- Tries: a call of 300 arguments.
-- Expects: error
return select('#', 0@{,1 * 300}@{,1 * 70000})
