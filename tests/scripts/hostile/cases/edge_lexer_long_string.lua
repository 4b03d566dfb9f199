-- Tries: a long text that does not end.
-- Expects: error
return [==[ open ]=]
