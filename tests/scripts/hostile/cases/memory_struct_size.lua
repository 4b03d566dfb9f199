-- Tries: sizes that overflow.
-- Expects: error
return struct.pack('c2147483647c2147483647c2147483647', 'a', 'b', 'c')
