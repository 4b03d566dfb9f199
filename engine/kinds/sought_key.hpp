// Keys that are searched for: in the order of their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/coding.hpp"
#include "semel/types.hpp"

namespace semel::engine {

/// The first eight bytes of a key as a number, with zeros behind a shorter one: numbers that differ
/// are in the order of the keys.
[[nodiscard]] inline std::uint64_t begin_of(Bytes key) noexcept {
  const std::size_t size = key.size();
  if (size >= sizeof(std::uint64_t)) return base::big_endian(key.data());
  std::uint64_t begin = 0;
  if (size >= sizeof(std::uint32_t)) {
    std::uint32_t first;
    std::uint32_t last;  // they overlap
    std::memcpy(&first, key.data(), sizeof first);
    std::memcpy(&last, key.data() + size - sizeof last, sizeof last);
    const std::size_t more = (size - sizeof first) * 8;
    begin = std::uint64_t{__builtin_bswap32(first)} << more | __builtin_bswap32(last);
  } else {
    for (const char byte : key) begin = begin << 8 | static_cast<unsigned char>(byte);
    if (size == 0) return 0;
  }
  return begin << (sizeof begin - size) * 8;
}

/// As one < other, for keys whose begin_of() is the same. Keys of streams differ in their first 24
/// bytes: without a call of memcmp() it takes half the time.
[[nodiscard]] inline bool is_less(Bytes one, Bytes other) noexcept {
  constexpr std::size_t word = sizeof(std::uint64_t);
  constexpr std::size_t words_max = 3;
  const std::size_t shared = one.size() < other.size() ? one.size() : other.size();
  if (shared <= word || shared > words_max * word) return one < other;
  for (std::size_t at = word;; at += word) {
    if (at + word > shared) at = shared - word;  // the last ones, and some before them once more
    const std::uint64_t next = base::big_endian(one.data() + at);
    const std::uint64_t other_next = base::big_endian(other.data() + at);
    if (next != other_next) return next < other_next;
    if (at + word == shared) return one.size() < other.size();
  }
}

/// A key that is compared with many others. Most of them differ from it in their first eight bytes:
/// without a call of memcmp() a search takes half the time.
class SoughtKey {
 public:
  explicit SoughtKey(Bytes key) noexcept : key_(key), begin_(begin_of(key)) {}

  [[nodiscard]] Bytes bytes() const noexcept { return key_; }

  [[nodiscard]] bool is_above(Bytes other) const noexcept {
    const std::uint64_t begin = begin_of(other);
    return begin != begin_ ? begin < begin_ : is_less(other, key_);
  }
  [[nodiscard]] bool is_below(Bytes other) const noexcept {
    const std::uint64_t begin = begin_of(other);
    return begin != begin_ ? begin_ < begin : is_less(key_, other);
  }

 private:
  Bytes key_;
  std::uint64_t begin_;
};

}  // namespace semel::engine
