-- Tries: a balance looked for from each place.
-- Expects: error
return string.gsub(string.rep('(', 300000), '%b()', 'x')
