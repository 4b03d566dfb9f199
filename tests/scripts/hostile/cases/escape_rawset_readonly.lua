-- Tries: to write into libraries past what guards them.
-- Expects: reply :0
local done = 0
for _, t in ipairs({redis, string, table, math, cjson, cmsgpack, struct, bit, coroutine}) do
  if pcall(rawset, t, 'trapped', 1) then done = done + 1 end
  if pcall(rawset, t, 'rep', function() end) then done = done + 1 end
end
return done
