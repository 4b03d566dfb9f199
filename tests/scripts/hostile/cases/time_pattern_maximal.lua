-- Tries: five longest matches in each other.
-- Expects: error
return string.find(string.rep('a', 20000), '.*.*.*.*x')
