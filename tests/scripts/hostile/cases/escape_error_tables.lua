-- Tries: errors that have no text, of which redis-server 7.0.15 dies.
-- Expects: error
error({})
