-- Tries: to leave something in KEYS and ARGV for the next script.
-- Expects: either
setmetatable(KEYS, {__index = function() return 'trapped' end})
setmetatable(ARGV, {__index = function() return 'trapped' end})
KEYS.x, ARGV.x = 1, 1
return 1
