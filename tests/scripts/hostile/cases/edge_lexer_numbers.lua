-- Tries: numbers of 100,000 digits.
-- Expects: either
return {tostring(@{9 * 100000}), 0x@{f * 1000}}
