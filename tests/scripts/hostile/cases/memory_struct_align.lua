-- Tries: alignments that are none.
-- Expects: either
return #struct.pack('!1073741824d', 1)
