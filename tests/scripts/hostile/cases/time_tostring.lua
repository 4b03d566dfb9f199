-- Tries: to make texts of numbers for ever.
-- Expects: error
while true do local s = 1/3 .. '' end
