-- Tries: numbers beyond what bits are taken of.
-- Expects: either
return {bit.tobit(0/0), bit.tobit(1/0), bit.band(2^63, -2^63), bit.lshift(1, 2^31), bit.rol(1, -2^31),
  bit.tohex(2^53, 2^31)}
