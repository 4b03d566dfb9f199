-- Tries: a reader that never ends, of which redis-server never returns.
-- Expects: either
return load(function() return 5 end)
