-- Tries: the longest numbers that there are.
-- Expects: either
return {#string.format('%.99f', 1e308), #string.format('%.99f', -1e308), string.format('%d', 2^63),
  string.format('%d', -2^63), string.format('%d', 1e300), string.format('%x', -1), string.format('%c', 256),
  string.format('%c', -1)}
