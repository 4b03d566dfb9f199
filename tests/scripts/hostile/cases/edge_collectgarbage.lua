-- Tries: to switch the collector off.
-- Expects: error
collectgarbage('stop')
collectgarbage('setpause', 1000000)
collectgarbage('setstepmul', 1)
while true do local t = {} end
