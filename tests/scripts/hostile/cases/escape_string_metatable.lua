-- Tries: to give every string of later scripts a trap.
-- Expects: error
getmetatable('').__index = function() return function() return 'trapped' end end
