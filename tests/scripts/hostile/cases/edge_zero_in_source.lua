-- Tries: zero bytes in the source.
-- Expects: either
local s = 'a@{\x00 * 1}b' return #s
