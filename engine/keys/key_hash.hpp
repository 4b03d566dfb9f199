// The keyed hash of a key: XXH3 with a secret. Keys of 17 to 64 bytes, as most have, are hashed
// here, in the frame of the call, with the numbers of XXH3_64bits_withSecret(). Source:
// https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "semel/types.hpp"

namespace semel::engine {

static_assert(std::endian::native == std::endian::little, "numbers are copied, not swapped");

[[nodiscard, gnu::always_inline]] inline bool is_hashed_here(std::size_t key_bytes) noexcept {
  constexpr std::size_t least = 17, most = 64;
  return key_bytes - least <= most - least;
}

/// Of a key for which is_hashed_here(). `secret`: at least 64 bytes.
[[nodiscard, gnu::always_inline]] inline std::uint64_t hash_here(
    Bytes key, const unsigned char* secret) noexcept {
  __extension__ using Product = unsigned __int128;
  const auto word = [](const void* from) __attribute__((always_inline)) {
    std::uint64_t value;
    std::memcpy(&value, from, sizeof value);
    return value;
  };
  const auto mix = [&](const char* from, std::size_t at) __attribute__((always_inline)) {
    const Product product =
        Product{word(from) ^ word(secret + at)} * (word(from + 8) ^ word(secret + at + 8));
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  const char* const end = key.data() + key.size();
  std::uint64_t hash = key.size() * 0x9E37'79B1'85EB'CA87U;
  if (key.size() > 32) hash += mix(key.data() + 16, 32) + mix(end - 32, 48);
  hash += mix(key.data(), 0) + mix(end - 16, 16);
  hash = (hash ^ hash >> 37) * 0x1656'6791'9E37'79F9U;
  return hash ^ hash >> 32;
}

/// Keys of two databases are different keys.
[[nodiscard]] constexpr std::uint64_t in_database(std::uint64_t hash, std::uint8_t db) noexcept {
  return hash ^ (std::uint64_t{db} * 0x9E37'79B9'7F4A'7C15U);
}

}  // namespace semel::engine
