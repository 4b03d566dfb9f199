-- Tries: to have redis.call see other tables than were given.
-- Expects: error
return redis.call(setmetatable({}, {__tostring = function() return 'PING' end}))
