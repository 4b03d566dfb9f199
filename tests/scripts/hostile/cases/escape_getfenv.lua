-- Tries: to reach globals that are not shown.
-- Expects: reply :0
local found = 0
local get = rawget(_G, 'getfenv')
for level = 0, 10 do
  local ok, env = pcall(get, level)
  if ok and type(env) == 'table' and rawget(env, 'io') then found = found + 1 end
end
for _, f in ipairs({redis.call, tostring, pcall, string.rep, cjson.encode}) do
  local ok, env = pcall(get, f)
  if ok and type(env) == 'table' and rawget(env, 'debug') then found = found + 1 end
end
return found
