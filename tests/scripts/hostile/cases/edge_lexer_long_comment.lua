-- Tries: a remark that does not end.
-- Expects: error
--[==[ open ]=]
return 1
