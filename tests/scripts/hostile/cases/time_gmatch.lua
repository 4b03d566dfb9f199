-- Tries: a slow pattern inside gmatch.
-- Expects: error
for w in string.gmatch(string.rep('a', 30000), '.-.-.-b') do end
return 1
