-- Tries: to leave a global for the next script.
-- Expects: error
rawset(_G, 'left', 1)
