-- Tries: an error with a very long text, caught and made longer.
-- Expects: error
local text = 'x'
while true do
  local ok, e = pcall(error, text .. text)
  text = e
end
