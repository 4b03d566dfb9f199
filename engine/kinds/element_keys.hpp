// Keys of elements, as bytes whose order is the order of the kind.
//
//   member of a set   an integer as Redis prints it: u8 128 + n | n bytes of it, the highest first;
//                     below zero u8 127 - n | the lowest n bytes of its two's complement. n is as
//                     small as can be. Anything else: u8 255 | the bytes
//   sorted set        8 bytes of the score, see encode_score() | the member
//
// So sets of integers are in the order of numbers, as Redis keeps them while they are small, and a
// set has only integers if its last member is one.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "semel/types.hpp"

namespace semel::engine {

inline constexpr std::size_t score_bytes = 8;

/// Appends to `to`.
void append_member_key(Bytes member, std::string& to);
[[nodiscard]] inline std::string member_key(Bytes member) {
  std::string key;
  append_member_key(member, key);
  return key;
}
/// Of a key that append_member_key() has made.
[[nodiscard]] inline bool is_integer_member(Bytes key) noexcept {
  return static_cast<unsigned char>(key.front()) != 255;
}
/// Its number.
[[nodiscard]] std::int64_t integer_of_member(Bytes key) noexcept;
/// Below the keys of all members that are no integers, and above those of integers.
inline constexpr Bytes other_members_begin{"\xff", 1};
/// Room for the text of an integer member.
using MemberText = std::array<char, 24>;
/// The member whose key this is. Points into the key, or into `text`.
[[nodiscard]] Bytes member_of(Bytes key, MemberText& text) noexcept;

/// The order of the bytes is that of the numbers; -0 becomes 0, with which it is equal. Not of NaN.
[[nodiscard]] inline std::array<char, score_bytes> encode_score(double score) noexcept {
  auto bits = std::bit_cast<std::uint64_t>(score == 0 ? 0.0 : score);
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  bits = (bits & sign) != 0 ? ~bits : bits | sign;
  std::array<char, score_bytes> bytes;
  for (std::size_t i = score_bytes; i-- > 0; bits >>= 8) bytes[i] = static_cast<char>(bits);
  return bytes;
}
/// Of the key of an element of a sorted set.
[[nodiscard]] inline double score_of(Bytes key) noexcept {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < score_bytes; ++i)
    bits = bits << 8 | static_cast<unsigned char>(key[i]);
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  return std::bit_cast<double>((bits & sign) != 0 ? bits & ~sign : ~bits);
}

/// Whether bytes that come from a disk or a peer are of a record of the kind.
[[nodiscard]] bool is_set_sound(Bytes record) noexcept;
[[nodiscard]] bool is_sorted_set_sound(Bytes record) noexcept;

}  // namespace semel::engine
