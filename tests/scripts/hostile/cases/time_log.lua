-- Tries: to write a long log for ever.
-- Expects: error
while true do redis.log(redis.LOG_DEBUG, 'line') end
