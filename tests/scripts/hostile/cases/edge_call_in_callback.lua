-- Tries: commands from inside functions of C.
-- Expects: reply $+PONG
local last
string.gsub('abc', '.', function() last = redis.call('PING').ok end)
table.sort({3, 1, 2}, function(a, b) redis.call('PING') return a < b end)
return '+' .. last
