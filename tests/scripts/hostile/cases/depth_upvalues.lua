-- Tries: a function that closes over 100 locals.
-- Expects: either
local t = {}
local src = {}
for i = 1, 100 do src[i] = 'local v' .. i .. ' = ' .. i end
src[101] = 'return function() return 0'
for i = 1, 100 do src[101 + i] = ' + v' .. i end
src[202] = ' end'
local f, e = loadstring(table.concat(src, ' '))
return f and f()() or e
