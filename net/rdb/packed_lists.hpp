// The packed lists of redis-server, as they are in its dumps. Numbers are little-endian
// unless the line says big-endian.
//
//   ziplist   u32 bytes | u32 place of the last entry | u16 entries, 65535: not counted | entries
//             | 255
//     entry   bytes of the entry before, u8 or u8 254 and u32 | encoding | bytes or number
//     encoding 00llllll, 01llllll l (big-endian), 128 and u32 (big-endian): so many bytes;
//             192 i16, 208 i32, 224 i64, 240 i24, 254 i8, 241 to 253: the number 0 to 12
//   listpack  u32 bytes | u16 entries, 65535: not counted | entries | 255
//     entry   encoding | bytes or number | bytes of both, 1 to 5 bytes to be read backwards
//     encoding 0nnnnnnn a number, 110nnnnn n one of 13 bits with its sign; 10llllll, 1110llll l,
//             240 and u32: so many bytes; 241 i16, 242 i24, 243 i32, 244 i64
//   intset    u32 bytes of a number, 2, 4 or 8 | u32 numbers | numbers, ascending
//   zipmap    u8 pairs, 254: not counted | pairs | 255
//     pair    length | key | length | u8 unused bytes | value | unused bytes
//     length  u8, or u8 254 and u32
//
// The bytes may be any: no reader leaves them, and other forms are refused.
#pragma once

#include <string_view>

#include "net/rdb/byte_items.hpp"

namespace semel::net {

// Each appends the items in their order, integers as text. False: damaged; `items` may have a part.

[[nodiscard]] bool read_ziplist(std::string_view bytes, ByteItems& items);
[[nodiscard]] bool read_listpack(std::string_view bytes, ByteItems& items);
[[nodiscard]] bool read_intset(std::string_view bytes, ByteItems& items);
/// Keys and values by turns.
[[nodiscard]] bool read_zipmap(std::string_view bytes, ByteItems& items);

}  // namespace semel::net
