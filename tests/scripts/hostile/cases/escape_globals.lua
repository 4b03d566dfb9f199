-- Tries: to reach files and processes by names that are not there.
-- Expects: reply :0
local found = 0
for _, name in ipairs({'io', 'debug', 'package', 'require', 'dofile', 'loadfile', 'module', 'ffi',
                       'jit', 'print', 'newproxy'}) do
  if rawget(_G, name) ~= nil then found = found + 1 end
end
return found
