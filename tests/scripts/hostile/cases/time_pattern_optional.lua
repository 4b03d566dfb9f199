-- Tries: a pattern with 24 optional parts on 50,000 bytes.
-- Expects: error
return string.find(string.rep('a', 50000), string.rep('a?', 24) .. string.rep('a', 24) .. 'b')
