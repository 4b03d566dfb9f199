-- Tries: to change the world of whoever called.
-- Expects: either
for level = 0, 10 do pcall(setfenv, level, {}) end
return 1
