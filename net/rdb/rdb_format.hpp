// RDB files of redis-server.
//
//   "REDIS" | 4 digits: version | items | u8 255 | from version 5 on u64 CRC-64 of all bytes
//   before; 0: it was not computed
//
//   item     first byte, and behind it
//    0 .. 21 key | value: see dump_format.hpp
//    7       key | length: id of the module's type | what the module wrote
//    245     string: a library of functions
//    247     length: id of the module's type | lengths: 2 and when | what the module wrote
//    248     length: s since the next key was used
//    249     u8: how often the next key is used
//    250     two strings: name and value of a fact about the file
//    251     lengths: keys of the database, those among them that end
//    252     i64: ms since 1970 when the next key ends
//    253     i32: the same in s
//    254     length: the database of the keys behind it
//
//   what a module wrote: lengths 1 or 2 and a length; 3 and f32; 4 and f64; 5 and a string; 0 at
//   the end
//   id of a module's type: 9 letters of 6 bits, and 10 bits of its version
//
// Refused: 6 (modules before 4.0, whose end only they know), 246 (functions of a release candidate
// of 7.0), and what later releases have.
#pragma once

#include <cstdint>

#include "net/rdb/dump_format.hpp"

namespace semel::net {

// First bytes of items that are no values.
inline constexpr std::uint8_t rdb_module_value = 7;
inline constexpr std::uint8_t rdb_function = 245;
inline constexpr std::uint8_t rdb_module_aux = 247;
inline constexpr std::uint8_t rdb_idle = 248;
inline constexpr std::uint8_t rdb_frequency = 249;
inline constexpr std::uint8_t rdb_aux = 250;
inline constexpr std::uint8_t rdb_sizes = 251;
inline constexpr std::uint8_t rdb_end_ms = 252;
inline constexpr std::uint8_t rdb_end_seconds = 253;
inline constexpr std::uint8_t rdb_database = 254;
inline constexpr std::uint8_t rdb_end = 255;

}  // namespace semel::net
