-- Tries: to hash a long text for ever.
-- Expects: error
local s = string.rep('x', 5000000)
while true do redis.sha1hex(s) end
