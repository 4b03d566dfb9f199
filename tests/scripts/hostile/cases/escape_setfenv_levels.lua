-- Tries: to change the globals of the caller.
-- Expects: either
for level = 0, 10 do pcall(setfenv, level, {}) end
return 1
