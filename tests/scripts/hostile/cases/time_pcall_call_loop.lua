-- Tries: commands that fail, for ever.
-- Expects: error
while true do redis.pcall('NOTHING') pcall(redis.call, 'INCR') end
