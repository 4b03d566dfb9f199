-- Tries: gsub whose result is much longer than its text.
-- Expects: error
return #string.gsub(string.rep('x', 100000), 'x', string.rep('y', 100000))
