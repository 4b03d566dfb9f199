-- Tries: a loop inside of gsub.
-- Expects: error
string.gsub(string.rep('x', 100000), 'x', function() while true do end end)
