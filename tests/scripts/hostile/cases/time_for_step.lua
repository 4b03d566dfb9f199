-- Tries: a loop whose step does nothing.
-- Expects: error
for i = 2^53, 2^53 + 10, 0.1 do end
return 1
