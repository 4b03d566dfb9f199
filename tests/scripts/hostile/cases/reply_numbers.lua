-- Tries: numbers that are none.
-- Expects: either
return {0/0, -(0/0), 1/0, -1/0, 2^63, -2^63, 2^64, 1e308, {double = 0/0}, {double = 1/0},
  {double = -1/0}}
