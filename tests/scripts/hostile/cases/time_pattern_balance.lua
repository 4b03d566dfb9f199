-- Tries: balances that never end.
-- Expects: error
return string.find(string.rep('(', 200000), '.-%b()x')
