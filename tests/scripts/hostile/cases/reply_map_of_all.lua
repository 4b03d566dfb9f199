-- Tries: a map with a key of each kind.
-- Expects: either
return {map = {[true] = 1, [1.5] = 2, x = 3, [print or tostring] = 4, [{}] = 5}}
