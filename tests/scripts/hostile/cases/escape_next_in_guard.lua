-- Tries: to take fields away while it walks over them.
-- Expects: error
for name in pairs(string) do string[name] = nil end
