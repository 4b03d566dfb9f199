-- Tries: to run for ever.
-- Expects: error
while true do end
