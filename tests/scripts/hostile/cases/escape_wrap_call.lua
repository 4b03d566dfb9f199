-- Tries: to call the server from a coroutine that is dropped in the middle.
-- Expects: reply :1000
for i = 1, 1000 do
  local co = coroutine.wrap(function()
    redis.call('INCR', 'dropped')
    coroutine.yield()
    redis.call('INCR', 'never')
  end)
  co()
end
return tonumber(redis.call('GET', 'dropped'))
