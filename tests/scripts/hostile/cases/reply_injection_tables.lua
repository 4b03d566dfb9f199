-- Tries: the same by each typed table.
-- Expects: either
return {{ok = 'a\r\n+b'}, {err = 'a\r\n+b'}, {big_number = '1\r\n+b'},
  {verbatim_string = {format = 'a\r\n', string = 'b\r\n+c'}}}
