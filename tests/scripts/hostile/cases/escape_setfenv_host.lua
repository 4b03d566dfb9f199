-- Tries: to give functions of the host another world.
-- Expects: error
setfenv(redis.call, {})
return 1
