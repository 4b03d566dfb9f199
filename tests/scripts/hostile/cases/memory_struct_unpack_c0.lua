-- Tries: a length from the data that is longer than the data.
-- Expects: error
return struct.unpack('Lc0', struct.pack('L', 2^52) .. 'abc')
