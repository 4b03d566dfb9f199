-- Tries: widths and precisions beyond the room for them.
-- Expects: either
for _, f in ipairs({'%99999d', '%.99999f', '%99.99s', '%-99.99e', '%100d', '%.100f', '%999999999999s',
                    '%--------------d', '%5.5.5d', '%*d', '%n', '%p', '%ld', '%hhd', '%a'}) do
  pcall(string.format, f, 1, 2, 3)
end
return #string.format('%99.99f', -1e308)
