-- Tries: errors whose text is none.
-- Expects: error
for _, value in ipairs({{err = {}}, {err = true}, {err = 5}, {err = function() end}}) do
  pcall(error, value)
end
error({err = {}})
