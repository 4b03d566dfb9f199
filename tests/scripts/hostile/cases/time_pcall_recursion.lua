-- Tries: to catch it at every level.
-- Expects: error
local function deep()
  pcall(deep)
  while true do end
end
deep()
