-- Tries: a source that is no text.
-- Expects: error
@{\x01\x02\x7f\xff * 1}
