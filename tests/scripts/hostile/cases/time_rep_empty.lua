-- Tries: to repeat nothing very often.
-- Expects: either
return #string.rep('', 2^53)
