-- Tries: to catch that there is no more, and go on.
-- Expects: error
local kept = {}
while true do
  pcall(function()
    local s = string.rep('x', 1000)
    while true do s = s .. s kept[#kept + 1] = s end
  end)
end
