-- Tries: text that is no UTF-8, both ways.
-- Expects: either
for _, s in ipairs({'\255\254', '\192\128', '\237\160\128', '\244\144\128\128', '\195', '\0'}) do
  pcall(function() return cjson.decode(cjson.encode(s)) end)
  pcall(cjson.decode, '"' .. s .. '"')
  pcall(cjson.decode, '{"' .. s .. '":1}')
end
for _, s in ipairs({'"\\ud800"', '"\\udc00\\ud800"', '"\\u"', '"\\uzzzz"', '"\\', '"\\ud83d\\u0041"'}) do
  pcall(cjson.decode, s)
end
return 1
