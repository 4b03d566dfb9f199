// The serialization of redis-server for one value, as DUMP writes and RESTORE reads it.
//
//   u8 type | value | u16 version of the format | u64 CRC-64 of all before
//
//   length   00nnnnnn, 01nnnnnn n (big-endian), 128 and u32 (big-endian), 129 and u64 (big-endian)
//   string   length | bytes; or 192 i8, 193 i16, 194 i32: the text of that number; or 195, length
//            packed, length, LZF bytes (net/rdb/lzf.hpp)
//
//   type     value
//    0       string
//    1, 2    length | strings: of a list, of a set
//    3       length | member and score each: u8 bytes and text; 253 nan, 254 inf, 255 -inf
//    4       length | field and value each
//    5       length | member and score each: f64
//    9 .. 13 string: a zipmap of a hash, ziplist of a list, intset of a set, ziplist of a sorted
//            set, ziplist of a hash
//   14       length | strings: ziplists of a list
//   16, 17   string: a listpack of a hash, of a sorted set
//   18       length | u8 1 and string: an item; 2 and string: a listpack; of a list
//   20       string: a listpack of a set
//
// Types 6 and 7 (modules), and 15, 19 and 21 (streams), are not read. Numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "net/rdb/byte_items.hpp"
#include "semel/op.hpp"

namespace semel::net {

enum class RdbType : std::uint8_t {
  string = 0,
  list = 1,
  set = 2,
  sorted_set = 3,
  hash = 4,
  sorted_set_2 = 5,
  hash_zipmap = 9,
  list_ziplist = 10,
  set_intset = 11,
  sorted_set_ziplist = 12,
  hash_ziplist = 13,
  list_quicklist = 14,
  hash_listpack = 16,
  sorted_set_listpack = 17,
  list_quicklist_2 = 18,
  set_listpack = 20,
};

inline constexpr std::uint16_t rdb_version_written = 10;   ///< of redis-server 7.0
inline constexpr std::uint16_t rdb_version_read_max = 11;  ///< of redis-server 7.2
inline constexpr std::size_t dump_footer_bytes = 10;

/// A value of a dump, in the order in which it stands there.
struct DumpValue {
  Kind kind = Kind::string;
  std::string text{};            ///< of a string
  ByteItems items{};             ///< elements, members; of a hash, fields and values by turns
  std::vector<double> scores{};  ///< of a sorted set, one for each item; none is NaN
};

}  // namespace semel::net
