-- Tries: a length from the data that is negative.
-- Expects: error
return struct.unpack('lc0', struct.pack('l', -1) .. 'abc')
