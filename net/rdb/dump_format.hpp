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
//   24       i64 ms of the first end | length | length, field and value each: the length is 0, the
//            field has no end, or 1 and the ms behind the first end
//   25       i64 ms of the first end | string: a listpack of field, value and end each: ms, or 0
//   15, 19   length | nodes, two strings each | lengths: entries, last id; of 19 also first id,
//   21       largest deleted id, entries ever added | length | groups; of a stream
//     node     string of 16 bytes: its id, big-endian | string: a listpack, see dump_stream.cpp
//     group    string: its name | lengths: last delivered id; of 19 and 21 also entries read
//              | length | pending ids | length | consumers
//     pending  id | i64 ms of the delivery | length: deliveries
//     consumer string: its name | i64 ms when seen | of 21 also i64 ms when active | length | ids
//     id       u64 ms | u64 seq, big-endian; among lengths: two of them
//
// Types 6 and 7 (modules) are not read. Numbers are little-endian.
#pragma once

#include <compare>
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
  stream = 15,  ///< of redis-server 5.0
  hash_listpack = 16,
  sorted_set_listpack = 17,
  list_quicklist_2 = 18,
  stream_2 = 19,  ///< of 7.0
  set_listpack = 20,
  stream_3 = 21,   ///< of 7.2
  hash_ends = 24,  ///< of 7.4
  hash_listpack_ends = 25,
};

inline constexpr std::uint16_t rdb_version_written = 10;  ///< of redis-server 7.0
inline constexpr std::uint16_t rdb_version_of_ends = 12;  ///< of 7.4: of a hash with them
inline constexpr std::uint16_t rdb_version_read_max = 12;
inline constexpr std::size_t dump_footer_bytes = 10;

/// A stream. The fields and values of its entries are DumpValue::items, entry behind entry.
struct DumpStream {
  struct Id {
    std::uint64_t ms = 0;
    std::uint64_t seq = 0;
    friend constexpr auto operator<=>(const Id&, const Id&) = default;
  };
  struct Entry {
    Id id{};
    std::uint32_t parts = 0;  ///< fields and values
  };
  struct Pending {
    Id id{};
    std::int64_t delivered_ms = 0;
    std::uint64_t deliveries = 0;
    std::uint32_t consumer = 0;  ///< index in Group::consumers
  };
  struct Consumer {
    std::string name{};
    std::int64_t seen_ms = 0;
    std::int64_t active_ms = -1;  ///< -1: never
  };
  struct Group {
    std::string name{};
    Id last{};
    std::int64_t entries_read = -1;  ///< -1: not known
    std::vector<Consumer> consumers{};
    std::vector<Pending> pending{};  ///< ascending
  };
  Id last{};
  Id max_deleted{};
  std::uint64_t entries_added = 0;
  bool has_positions = false;    ///< false: of 5.0, which did not write entries_read
  std::vector<Entry> entries{};  ///< ascending
  std::vector<Group> groups{};
};

/// A value of a dump, in the order in which it stands there.
struct DumpValue {
  Kind kind = Kind::string;
  std::string text{};            ///< of a string
  ByteItems items{};             ///< elements, members; of a hash, fields and values by turns
  std::vector<double> scores{};  ///< of a sorted set, one for each item; none is NaN
  /// Of a hash with ends, one for each field: ms since 1970, 0 for none.
  std::vector<std::int64_t> ends{};
  DumpStream stream{};
};

enum class DumpFault : std::uint8_t {
  none,
  footer,     ///< the checksum is not that of the bytes, or a later release wrote it
  format,     ///< of a kind that is not read, damaged, or without elements
  too_large,  ///< more than `bytes_max` bytes when it is unpacked
};

}  // namespace semel::net
