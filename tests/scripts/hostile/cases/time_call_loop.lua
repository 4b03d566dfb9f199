-- Tries: commands for ever.
-- Expects: error
while true do redis.call('INCR', 'n') end
