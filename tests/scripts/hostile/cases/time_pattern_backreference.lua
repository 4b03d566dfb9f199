-- Tries: long texts that are compared again and again.
-- Expects: error
return string.find(string.rep('a', 20000), '(.*)%1%1%1x')
