-- Tries: to change the world of the thread, for later scripts.
-- Expects: either
setfenv(0, {redis = {call = function() return 'trapped' end}})
return 1
